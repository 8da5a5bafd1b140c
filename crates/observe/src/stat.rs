//! Parsers of the two files called `stat`: CPU times of the machine and counters of a process. They
//! only read the text; callers compute the growth between two readings.
//! Source of the fields: `proc_stat(5)` and `proc_pid_stat(5)`.

/// Time of one CPU or of all CPUs by activity, in ticks since boot. Kernels before 2.6.33 report
/// fewer kinds; the others are 0 then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    /// User mode, including guests.
    pub(crate) user: u64,
    /// User mode of processes with lowered priority, including guests.
    pub(crate) nice: u64,
    pub(crate) system: u64,
    /// No task to run.
    pub(crate) idle: u64,
    /// No task to run except those waiting for a disk.
    pub(crate) iowait: u64,
    pub(crate) irq: u64,
    pub(crate) softirq: u64,
    /// Ready to run while the hypervisor gave the CPU to others.
    pub(crate) steal: u64,
    /// Virtual machines that run on this one; included in `user` and `nice`.
    pub(crate) guest: u64,
}

impl CpuTimes {
    /// The numbers of a line; `None` without the first four.
    fn parse(numbers: &str) -> Option<CpuTimes> {
        let mut ticks = [0; 10];
        let mut count = 0;
        for (tick, word) in ticks.iter_mut().zip(numbers.split_ascii_whitespace()) {
            *tick = word.parse().ok()?;
            count += 1;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice] = ticks;
        (count >= 4).then_some(CpuTimes {
            user,
            nice,
            system,
            idle,
            iowait,
            irq,
            softirq,
            steal,
            guest: guest.saturating_add(guest_nice),
        })
    }

    /// The line of all CPUs together, from `/proc/stat`.
    pub(crate) fn of_all(stat: &str) -> Option<CpuTimes> {
        CpuTimes::parse(stat.lines().next()?.strip_prefix("cpu ")?)
    }

    /// The total time. Guests are included in other kinds.
    pub(crate) fn total(&self) -> u64 {
        let not_busy = self.idle.saturating_add(self.iowait);
        self.busy().saturating_add(not_busy)
    }

    /// All kinds except the two in which the CPU did nothing.
    pub(crate) fn busy(&self) -> u64 {
        let interrupts = [self.irq, self.softirq];
        let work = [self.user, self.nice, self.system, self.steal];
        work.into_iter().chain(interrupts).fold(0, u64::saturating_add)
    }

    /// Growth of each kind. For a CPU without ticks the kernel estimates idle and iowait time and
    /// sometimes corrects them downwards; the growth is 0 then.
    pub(crate) fn growth_since(&self, before: &CpuTimes) -> CpuTimes {
        self.with_each(before, u64::saturating_sub)
    }

    /// The sum of both.
    pub(crate) fn plus(&self, other: &CpuTimes) -> CpuTimes {
        self.with_each(other, u64::saturating_add)
    }

    fn with_each(&self, other: &CpuTimes, join: fn(u64, u64) -> u64) -> CpuTimes {
        CpuTimes {
            user: join(self.user, other.user),
            nice: join(self.nice, other.nice),
            system: join(self.system, other.system),
            idle: join(self.idle, other.idle),
            iowait: join(self.iowait, other.iowait),
            irq: join(self.irq, other.irq),
            softirq: join(self.softirq, other.softirq),
            steal: join(self.steal, other.steal),
            guest: join(self.guest, other.guest),
        }
    }
}

/// The online CPUs with their times, from `/proc/stat`. Skips lines that it does not understand.
pub(crate) fn cores(stat: &str) -> impl Iterator<Item = (u64, CpuTimes)> {
    stat.lines().filter_map(|line| {
        let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((number.parse().ok()?, CpuTimes::parse(times)?))
    })
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// A letter; `Z` and `X` mean that the process has ended.
    pub(crate) state: char,
    /// Page faults without disk access, of all threads.
    pub(crate) minor_faults: u64,
    /// Page faults with disk access, of all threads.
    pub(crate) major_faults: u64,
    /// CPU time in user mode, of all threads.
    pub(crate) user_ticks: u64,
    /// CPU time in the kernel, of all threads.
    pub(crate) system_ticks: u64,
    /// Live threads.
    pub(crate) threads: u64,
    /// Start time; distinguishes it from a later process with the same number.
    pub(crate) start_ticks: u64,
    /// Resident memory in pages.
    pub(crate) resident_pages: Option<u64>,
    /// Time that the main thread, or the thread whose file it is, waited for a disk.
    pub(crate) io_delay_ticks: Option<u64>,
}

impl ProcessStat {
    /// The counters of a line. The name in field 2 may contain anything.
    pub(crate) fn parse(stat: &str) -> Option<ProcessStat> {
        let (_, rest) = stat.rsplit_once(')')?;
        // Field 3 is the first one after the name.
        let mut fields = rest.split_ascii_whitespace().zip(3..);
        let mut field = |wanted: usize| fields.find(|(_, number)| *number == wanted);
        let state = field(3)?.0.chars().next()?;
        let mut number = |wanted| field(wanted)?.0.parse::<u64>().ok();
        // In ascending order, because the iterator advances.
        Some(ProcessStat {
            state,
            minor_faults: number(10)?,
            major_faults: number(12)?,
            user_ticks: number(14)?,
            system_ticks: number(15)?,
            threads: number(20)?,
            start_ticks: number(22)?,
            resident_pages: number(24),
            io_delay_ticks: number(42),
        })
    }

    /// Whether it has ended and its parent has not collected it yet.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn machine_times_are_read_by_core() {
        let text = "cpu  30 2 6 50 4 1 3 5 7 8\ncpu0 10 1 2 25 4 0 3 0 0 0\ncpu7 20 1 4 25\n\
            cpux 1 2 3 4\ncpu9 1 2\nintr 9 1\n";
        let all = CpuTimes::of_all(text).unwrap();
        assert_eq!((all.busy(), all.total(), all.guest), (47, 101, 15));
        let cores: Vec<_> = cores(text).collect();
        assert_eq!(cores.len(), 2);
        assert_eq!((cores[0].0, cores[1].0), (0, 7));
        assert_eq!((cores[0].1.softirq, cores[1].1.iowait), (3, 0));
        assert_eq!(CpuTimes::of_all("intr 5\n"), None);
    }

    #[test]
    fn decreased_kind_has_not_grown() {
        let before = CpuTimes { user: 10, iowait: 9, ..CpuTimes::default() };
        let now = CpuTimes { user: 14, iowait: 8, ..CpuTimes::default() };
        let growth = now.growth_since(&before);
        assert_eq!((growth.user, growth.iowait, growth.total()), (4, 0, 4));
    }

    #[test]
    fn process_name_with_parentheses_is_read() {
        let text = "7 (a) b (c)) S 1 7 7 0 -1 4194304 98 11 3 0 120 30 0 0 20 0 25 0 987 3133440 380 \
            18446744073709551615 1 1 1 1 1 0 0 0 0 0 0 0 17 1 0 0 42 0 0\n";
        let stat = ProcessStat::parse(text).unwrap();
        let expected = ProcessStat {
            state: 'S',
            minor_faults: 98,
            major_faults: 3,
            user_ticks: 120,
            system_ticks: 30,
            threads: 25,
            start_ticks: 987,
            resident_pages: Some(380),
            io_delay_ticks: Some(42),
        };
        assert_eq!(stat, expected);
        assert_eq!(ProcessStat::parse("7 (a) S 1 7 7"), None);
        assert!(!stat.has_ended());
        let ended = ProcessStat { state: 'Z', threads: 1, ..stat };
        assert!(ended.has_ended());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*", line in "cpu[0-9 ]{0,60}\\)[A-Z0-9 -]{0,90}") {
            for text in [&text, &line] {
                let _ = (CpuTimes::of_all(text), cores(text).count(), ProcessStat::parse(text));
            }
        }
    }
}
