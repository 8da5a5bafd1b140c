"""Tests that the checks can fail: `python3 -m unittest conformance.test_checks`, in `drivers/`."""

import unittest

from . import checks
from .wire import encode


class Checks(unittest.TestCase):
    def test_missing_foreign_and_repeated_numbers_are_found(self):
        self.assertEqual(checks.once_each([0, 1, 2], range(3)), [])
        self.assertEqual(len(checks.once_each([0, 2, 2, 7], range(3))), 3)

    def test_instants_out_of_order_are_found(self):
        self.assertEqual(checks.produced([(0, 10, 11, 12), (1, 10, 11, -12)], 10, 12), [])
        for stamp in [(0, 9, 11, 12), (0, 12, 11, 12), (0, 10, 13, 12), (0, 10, 11, 13)]:
            self.assertEqual(len(checks.produced([stamp], 10, 12)), 1, stamp)

    def test_too_many_inserts_in_flight_are_found(self):
        self.assertEqual(checks.in_flight([(0, 0, 1, 5), (1, 0, 5, 6)], 1), [])
        self.assertEqual(len(checks.in_flight([(0, 0, 1, 5), (1, 0, 4, 6)], 1)), 1)

    def test_the_most_inserts_in_flight_are_counted(self):
        self.assertEqual(checks.most_in_flight([(0, 0, 1, 5), (1, 0, 2, -6), (2, 0, 5, 7)]), 2)

    def test_the_write_concern_is_read_from_the_bytes_of_a_command(self):
        command = encode({"insert": "c", "writeConcern": {"w": "majority", "j": True}, "ordered": True})
        self.assertEqual(checks.write_concern(command), {"w": "majority", "j": True})
        self.assertIsNone(checks.write_concern(encode({"insert": "c"})))

    def test_another_schedule_and_lateness_are_found(self):
        self.assertEqual(checks.scheduled([(5, 107, 108, 109)], [7], 100, 5), [])
        self.assertEqual(len(checks.scheduled([(5, 108, 108, 109)], [7], 100, 5)), 1)
        self.assertEqual(checks.late([(0, 0, 9, 9)], 10), [])
        self.assertEqual(len(checks.late([(0, 0, 10, 10)], 10)), 1)

    def test_received_messages_that_were_not_sent_so_are_found(self):
        sent = {(1, 0): 5}
        self.assertEqual(checks.consumed([(0, 5, 6, 1, 0)], sent, 9), [])
        for stamp in [(0, 4, 6, 1, 0), (0, 5, 4, 1, 0), (0, 5, 10, 1, 0), (0, 5, 6, 2, 0)]:
            self.assertNotEqual(checks.consumed([stamp], sent, 9), [], stamp)


if __name__ == "__main__":
    unittest.main()
