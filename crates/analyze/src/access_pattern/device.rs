//! Distinguishes calls that waited for a device from calls that the page cache answered, by block layer
//! requests.
//!
//! A call waited for a request that ended while the call was in progress; if several calls of the process were
//! in progress, the call that ended first after the request waited. The bytes of a request belong to the call
//! that was in progress when it was queued; for read-ahead this is the call that triggered it, whoever needs
//! the data later. Sectors are not compared with file offsets. So a request may be assigned to a call of the
//! same process on another file; ambiguous assignments are counted.
//!
//! A read that is delayed by a control group limit or by a stacked layer becomes a request of a kernel thread.
//! So the bytes that a process requested from devices, which the kernel counts per call before any delay, are
//! compared with the requests in the process's own name. As long as some bytes are owed, requests of kernel
//! threads are assigned to its calls as well. If the record does not contain the requested bytes, such requests
//! are assigned to no call.

use dyno_record::io_trace::event::{BlockOperation, BlockRequest, Call};
use std::collections::{HashMap, VecDeque};

/// How long after a request its call may still be processed.
const MEMORY_NS: i64 = 120_000_000_000;
/// Most remembered events of a process.
const MOST_EVENTS: usize = 1 << 18;
/// Lower limit of the owed bytes, below 0: requests of calls that are not compared, such as writes that have to
/// read, are assigned to reads as well.
const MOST_AHEAD: i64 = -(1 << 20);
/// The process number of requests by kernel threads.
const KERNEL: u32 = 0;
/// Owed bytes expire after this time without a call.
const OWED_NS: i64 = 1_000_000_000;
/// Most events that are examined for one call.
const MOST_STEPS: usize = 1024;

/// Start or end of a request.
#[derive(Clone, Copy, Debug)]
struct Event {
    at_ns: i64,
    bytes: u32,
    is_taken: bool,
    is_shared: bool,
}

/// Events of a process in time order.
#[derive(Clone, Debug, Default)]
struct Timeline(VecDeque<Event>);

/// Device work for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    /// Requests that ended during the call and that no earlier call waited for.
    pub(super) waited: u64,
    /// Bytes that the call requested; if not recorded, the bytes of the requests that it triggered.
    pub(super) bytes: u64,
    /// Requests that another call could also have waited for.
    pub(super) shared: u64,
    /// Bytes of other processes' requests that the call waited for.
    pub(super) handed_on: u64,
}

/// Requests that may still belong to calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Matcher {
    by_process: HashMap<u32, (Timeline, Timeline)>,
    callers: HashMap<u32, Owed>,
    /// Owed bytes that expired.
    given_up: u64,
    /// Queue time of the first request; the device was not traced before.
    first_ns: Option<i64>,
}

/// Bytes that a process requested from devices and that no request in its name has fetched: temporarily below 0
/// if a call ends after another call that received its requests.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    bytes: i64,
    ended_ns: i64,
}

impl Matcher {
    /// Remembers a request. Requests arrive in the order of their ends, and before the calls that end after
    /// them.
    pub(super) fn add(&mut self, request: &BlockRequest) {
        if request.operation != BlockOperation::Read {
            return;
        }
        let queued = request.issue_ns.saturating_sub(request.queue_ns as i64);
        self.first_ns = Some(self.first_ns.map_or(queued, |first| first.min(queued)));
        let done = request.issue_ns.saturating_add(request.device_ns as i64);
        let (begins, ends) = self.by_process.entry(request.process).or_default();
        begins.insert(queued, request.bytes);
        ends.insert(done, request.bytes);
    }

    /// Device work for a call. Calls arrive in the order of their ends.
    pub(super) fn serve(&mut self, call: &Call) -> Served {
        let end_ns = call.start_ns.saturating_add(call.latency_ns as i64);
        let mut served = Served::default();
        let own = self.by_process.get_mut(&call.process);
        if let Some((begins, ends)) = own {
            let begun = begins.take(call.start_ns, end_ns, i64::MAX);
            let ended = ends.take(call.start_ns, end_ns, i64::MAX);
            served.waited = ended.0;
            served.bytes = begun.1;
            served.shared = ended.2;
        }
        let owed = self.callers.entry(call.process).or_default();
        let Ok(fetched) = u64::try_from(call.fetched) else {
            return served;
        };
        if call.start_ns > owed.ended_ns.saturating_add(OWED_NS) {
            self.given_up += u64::try_from(owed.bytes).unwrap_or(0);
            owed.bytes = 0;
        }
        owed.ended_ns = owed.ended_ns.max(end_ns);
        owed.bytes = owed.bytes.saturating_add(call.fetched) - served.bytes as i64;
        owed.bytes = owed.bytes.max(MOST_AHEAD);
        served.bytes = fetched;
        let mut left = owed.bytes;
        if left > 0 {
            if let Some((_, ends)) = self.by_process.get_mut(&KERNEL) {
                let (count, bytes, _) = ends.take(call.start_ns, end_ns, left);
                served.waited += count;
                served.handed_on = bytes.min(left as u64);
                left -= served.handed_on as i64;
            }
            // A device becomes known with the first calls on its files. A call that requested as much as it
            // transferred waited.
            let is_unwatched = self.first_ns.is_none_or(|first| end_ns < first);
            if is_unwatched && fetched > 0 && fetched >= call.bytes() {
                served.waited += 1;
                left -= call.fetched;
            }
            owed.bytes = left;
        }
        served
    }

    /// Requested bytes without a known request.
    pub(super) fn owed_bytes(&self) -> u64 {
        let owed = self.callers.values();
        let now = owed.map(|owed| u64::try_from(owed.bytes).unwrap_or(0));
        self.given_up + now.sum::<u64>()
    }
}

impl Timeline {
    fn insert(&mut self, at_ns: i64, bytes: u32) {
        while self.0.len() >= MOST_EVENTS
            || self.0.front().is_some_and(|event| event.at_ns < at_ns.saturating_sub(MEMORY_NS))
        {
            self.0.pop_front();
        }
        let event = Event { at_ns, bytes, is_taken: false, is_shared: false };
        // Events are nearly in order: the place is close to the end.
        let mut place = self.0.len();
        while place > 0 && self.0[place - 1].at_ns > at_ns {
            place -= 1;
        }
        self.0.insert(place, event);
    }

    /// Takes the events from `start_ns` to `end_ns` until they have `wanted` bytes. Returns their number, their
    /// bytes, and the number of events that were taken before.
    fn take(&mut self, start_ns: i64, end_ns: i64, wanted: i64) -> (u64, u64, u64) {
        let first = self.0.partition_point(|event| event.at_ns < start_ns);
        let (mut count, mut bytes, mut shared) = (0, 0, 0);
        for event in self.0.range_mut(first..).take(MOST_STEPS) {
            if event.at_ns > end_ns || bytes as i64 >= wanted {
                break;
            }
            if !event.is_taken {
                event.is_taken = true;
                count += 1;
                bytes += u64::from(event.bytes);
            } else if !event.is_shared {
                event.is_shared = true;
                shared += 1;
            }
        }
        (count, bytes, shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::io_trace::event::Operation;

    fn read(thread: u32, start_ns: i64, latency_ns: u64) -> Call {
        Call {
            start_ns,
            latency_ns,
            offset: 0,
            requested: 4096,
            returned: 4096,
            file: 0,
            process: 7,
            thread,
            operation: Operation::Read,
            fetched: -1,
        }
    }

    fn request(issue_ns: i64, queue_ns: u64, device_ns: u64) -> BlockRequest {
        BlockRequest {
            issue_ns,
            queue_ns,
            device_ns,
            sector: 0,
            bytes: 4096,
            device: 0,
            operation: BlockOperation::Read,
            process: 7,
        }
    }

    fn served(waited: u64, bytes: u64, shared: u64) -> Served {
        Served { waited, bytes, shared, handed_on: 0 }
    }

    #[test]
    fn request_belongs_to_first_ending_call_and_choices_are_counted() {
        let mut matcher = Matcher::default();
        matcher.add(&request(20_000, 0, 70_000));
        assert_eq!(matcher.serve(&read(7, 0, 100_000)), served(1, 4096, 0));
        assert_eq!(matcher.serve(&read(8, 10_000, 200_000)), served(0, 0, 1));
        assert_eq!(matcher.serve(&read(7, 300_000, 1000)), served(0, 0, 0));
    }

    #[test]
    fn read_ahead_belongs_to_its_caller_though_another_call_waits() {
        let mut matcher = Matcher::default();
        matcher.add(&request(5_000, 1_000, 95_000));
        assert_eq!(matcher.serve(&read(7, 3_000, 3_000)), served(0, 4096, 0));
        assert_eq!(matcher.serve(&read(7, 50_000, 60_000)), served(1, 0, 0));
    }

    #[test]
    fn requests_that_come_out_of_order_are_found() {
        let mut matcher = Matcher::default();
        for issue in [50_000, 10_000, 90_000, 30_000] {
            matcher.add(&request(issue, 0, 5_000));
        }
        for start in [8_000, 28_000, 48_000, 88_000] {
            assert_eq!(matcher.serve(&read(7, start, 10_000)), served(1, 4096, 0));
        }
    }

    #[test]
    fn kernel_thread_request_belongs_to_the_call_that_asked_for_it() {
        let of_kernel = |issue_ns| BlockRequest { process: KERNEL, ..request(issue_ns, 0, 5_000) };
        let asking = |start_ns, fetched| Call { fetched, ..read(7, start_ns, 50_000) };
        let mut matcher = Matcher::default();
        for issue_ns in [30_000, 130_000, 230_000, 330_000] {
            matcher.add(&of_kernel(issue_ns));
        }
        let held_back = Served { waited: 1, bytes: 4096, shared: 0, handed_on: 4096 };
        assert_eq!(matcher.serve(&asking(0, 4096)), held_back);
        // The call requested nothing, or that is unknown: the request belongs to another process.
        assert_eq!(matcher.serve(&asking(100_000, 0)), served(0, 0, 0));
        assert_eq!(matcher.serve(&asking(200_000, -1)), served(0, 0, 0));
        // A call waits for read-ahead of another call.
        assert_eq!(matcher.serve(&asking(250_000, 4096)), served(0, 4096, 0));
        let waited = matcher.serve(&asking(300_000, 0));
        assert_eq!((waited.waited, waited.handed_on), (1, 4096));
        assert_eq!(matcher.owed_bytes(), 0);
    }

    #[test]
    fn call_before_device_tracing_waited_if_it_fetched_its_bytes() {
        let mut matcher = Matcher::default();
        matcher.add(&request(500_000, 0, 5_000));
        let asking = |start_ns, fetched| Call { fetched, ..read(7, start_ns, 50_000) };
        assert_eq!(matcher.serve(&asking(0, 4096)), served(1, 4096, 0));
        assert_eq!(matcher.serve(&asking(100_000, 0)), served(0, 0, 0));
        assert_eq!(matcher.serve(&asking(600_000, 4096)), served(0, 4096, 0));
        assert_eq!(matcher.owed_bytes(), 4096);
    }

    #[test]
    fn bytes_fetched_in_the_callers_name_leave_no_debt() {
        let mut matcher = Matcher::default();
        matcher.add(&request(10_000, 0, 5_000));
        matcher.add(&BlockRequest { process: KERNEL, ..request(20_000, 0, 5_000) });
        let call = Call { fetched: 4096, ..read(7, 0, 50_000) };
        assert_eq!(matcher.serve(&call), served(1, 4096, 0));
        // Requested bytes without a request are reported.
        let unseen = Call { start_ns: 100_000, ..call };
        assert_eq!(matcher.serve(&unseen).waited, 0);
        assert_eq!(matcher.owed_bytes(), 4096);
    }
}
