//! Tells calls that waited for a device from calls that the page cache answered, by the requests of
//! the block layer.
//!
//! A request that ends while a call of its process is under way is what that call waited for; of
//! several calls under way, the one that ends first after the request did. The bytes of a request
//! are those of the call under way when it was queued, which for read-ahead is the call that set it
//! off, whoever needs the data later. Sectors are not compared with places in files. So a request
//! may be given to another call of the process on another file; how often there was a choice is
//! counted.
//!
//! A read that is held back, by the limit of a control group or a layer that hands it on, becomes a
//! request in the name of a thread of the kernel. So the bytes that a process asked devices for, which
//! the kernel counts for each call before anything holds them back, are compared with those of the
//! requests in its own name. As long as some are owed, requests of threads of the kernel are given to
//! its calls too. Where the record does not tell what was asked for, such requests are given
//! to none.

use dyno_record::io_trace::event::{BlockOperation, BlockRequest, Call};
use std::collections::{HashMap, VecDeque};

/// How much later than a request a call may be looked at that it belongs to.
const MEMORY_NS: i64 = 120_000_000_000;
/// Most events of a process that are remembered.
const MOST_EVENTS: usize = 1 << 18;
/// How far below zero what is owed can fall: requests of calls that are not compared, such as writes
/// that have to read, are given to reads too.
const MOST_AHEAD: i64 = -(1 << 20);
/// The process of requests that threads of the kernel made.
const KERNEL: u32 = 0;
/// After so long without a call what is owed is given up.
const OWED_NS: i64 = 1_000_000_000;
/// Most events that are looked at for one call.
const MOST_STEPS: usize = 1024;

/// The beginning or the end of a request.
#[derive(Clone, Copy, Debug)]
struct Event {
    at_ns: i64,
    bytes: u32,
    is_taken: bool,
    is_shared: bool,
}

/// Events of a process, by time.
#[derive(Clone, Debug, Default)]
struct Timeline(VecDeque<Event>);

/// What the device did for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    /// Requests that ended while it was under way, and that no earlier call had waited for.
    pub(super) waited: u64,
    /// Bytes that it asked for; those of the requests that it set off where that is not recorded.
    pub(super) bytes: u64,
    /// Requests that another call could have waited for as well.
    pub(super) shared: u64,
    /// Bytes of requests of other processes that it waited for.
    pub(super) handed_on: u64,
}

/// Requests that still may belong to calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Matcher {
    by_process: HashMap<u32, (Timeline, Timeline)>,
    callers: HashMap<u32, Owed>,
    /// Of what was owed, what was given up.
    given_up: u64,
    /// When the first request was queued: before, the device was not watched yet.
    first_ns: Option<i64>,
}

/// What a process has asked devices for and no request in its name has fetched: below zero for a
/// while where a call ends after another one to which its requests were given.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    bytes: i64,
    ended_ns: i64,
}

impl Matcher {
    /// Remembers a request. Requests come about in the order of their ends, and before the calls
    /// that end after them.
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

    /// What was done for a call. Calls come about in the order of their ends.
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
            // The device gets known by the first calls on its files. One that asked for as much as it moved waited.
            let is_unwatched = self.first_ns.is_none_or(|first| end_ns < first);
            if is_unwatched && fetched > 0 && fetched >= call.bytes() {
                served.waited += 1;
                left -= call.fetched;
            }
            owed.bytes = left;
        }
        served
    }

    /// Bytes that were asked for and that no request is known to have fetched.
    pub(super) fn owed_bytes(&self) -> u64 {
        let owed = self.callers.values();
        let now = owed.map(|owed| u64::try_from(owed.bytes).unwrap_or(0));
        self.given_up + now.sum::<u64>()
    }
}

impl Timeline {
    fn insert(&mut self, at_ns: i64, bytes: u32) {
        while self.0.len() >= MOST_EVENTS
            || self
                .0
                .front()
                .is_some_and(|event| event.at_ns < at_ns.saturating_sub(MEMORY_NS))
        {
            self.0.pop_front();
        }
        let event = Event {
            at_ns,
            bytes,
            is_taken: false,
            is_shared: false,
        };
        // Nearly in order: the place is close to the end.
        let mut place = self.0.len();
        while place > 0 && self.0[place - 1].at_ns > at_ns {
            place -= 1;
        }
        self.0.insert(place, event);
    }

    /// Takes the events from `start_ns` to `end_ns` until they have `wanted` bytes: how many, their
    /// bytes, and how many that were taken before are found a second time.
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
        Served {
            waited,
            bytes,
            shared,
            handed_on: 0,
        }
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
        let of_kernel = |issue_ns| BlockRequest {
            process: KERNEL,
            ..request(issue_ns, 0, 5_000)
        };
        let asking = |start_ns, fetched| Call {
            fetched,
            ..read(7, start_ns, 50_000)
        };
        let mut matcher = Matcher::default();
        for issue_ns in [30_000, 130_000, 230_000, 330_000] {
            matcher.add(&of_kernel(issue_ns));
        }
        let held_back = Served {
            waited: 1,
            bytes: 4096,
            shared: 0,
            handed_on: 4096,
        };
        assert_eq!(matcher.serve(&asking(0, 4096)), held_back);
        // It asked for nothing, or that is not known: the request is somebody else's.
        assert_eq!(matcher.serve(&asking(100_000, 0)), served(0, 0, 0));
        assert_eq!(matcher.serve(&asking(200_000, -1)), served(0, 0, 0));
        // What one call had read ahead is waited for by another.
        assert_eq!(matcher.serve(&asking(250_000, 4096)), served(0, 4096, 0));
        let waited = matcher.serve(&asking(300_000, 0));
        assert_eq!((waited.waited, waited.handed_on), (1, 4096));
        assert_eq!(matcher.owed_bytes(), 0);
    }

    #[test]
    fn call_before_device_tracing_waited_if_it_fetched_its_bytes() {
        let mut matcher = Matcher::default();
        matcher.add(&request(500_000, 0, 5_000));
        let asking = |start_ns, fetched| Call {
            fetched,
            ..read(7, start_ns, 50_000)
        };
        assert_eq!(matcher.serve(&asking(0, 4096)), served(1, 4096, 0));
        assert_eq!(matcher.serve(&asking(100_000, 0)), served(0, 0, 0));
        assert_eq!(matcher.serve(&asking(600_000, 4096)), served(0, 4096, 0));
        assert_eq!(matcher.owed_bytes(), 4096);
    }

    #[test]
    fn bytes_fetched_in_the_callers_name_leave_no_debt() {
        let mut matcher = Matcher::default();
        matcher.add(&request(10_000, 0, 5_000));
        matcher.add(&BlockRequest {
            process: KERNEL,
            ..request(20_000, 0, 5_000)
        });
        let call = Call {
            fetched: 4096,
            ..read(7, 0, 50_000)
        };
        assert_eq!(matcher.serve(&call), served(1, 4096, 0));
        // And what was asked for without a request is told.
        let unseen = Call {
            start_ns: 100_000,
            ..call
        };
        assert_eq!(matcher.serve(&unseen).waited, 0);
        assert_eq!(matcher.owed_bytes(), 4096);
    }
}
