//! Memory use of the machine.

use super::file::KeptFile;
use super::part::Part;
use crate::health::Reading;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, memory};
use std::path::Path;

/// Lines of `/proc/meminfo` that map directly to metrics.
pub(in crate::watch) const LINES: &[(&str, Metric)] = &[
    (TOTAL, memory::TOTAL_BYTES),
    ("MemFree", memory::FREE_BYTES),
    ("MemAvailable", memory::AVAILABLE_BYTES),
    ("Buffers", memory::BUFFERS_BYTES),
    ("Cached", memory::CACHED_BYTES),
    ("Dirty", memory::DIRTY_BYTES),
    ("Writeback", memory::WRITEBACK_BYTES),
    ("AnonPages", memory::ANONYMOUS_BYTES),
    ("Slab", memory::SLAB_BYTES),
    ("AnonHugePages", memory::TRANSPARENT_HUGEPAGES_BYTES),
];
const TOTAL: &str = "MemTotal";

/// The memory.
pub(super) struct Memory {
    file: KeptFile,
}

impl Memory {
    pub(super) fn new(root: &Path) -> Memory {
        Memory { file: KeptFile::new(root, "proc/meminfo") }
    }
}

impl Part for Memory {
    fn read(&mut self, _: f64, reported: &mut Reported) -> Reading<()> {
        let text = self.file.read()?;
        let (mut swap_total, mut swap_free) = (None, None);
        let mut has_total = false;
        for line in text.lines() {
            let Some((name, rest)) = line.split_once(':') else {
                continue;
            };
            let Some(bytes) = bytes(rest) else {
                continue;
            };
            match name {
                "SwapTotal" => swap_total = Some(bytes),
                "SwapFree" => swap_free = Some(bytes),
                // Huge pages of all sizes together.
                "Hugetlb" => reported.put(memory::HUGEPAGES_BYTES.id(), bytes),
                _ => {
                    if let Some((line, metric)) = LINES.iter().find(|(line, _)| *line == name) {
                        reported.put(metric.id(), bytes);
                        has_total |= *line == TOTAL;
                    }
                }
            }
        }
        let swap_used = swap_total.zip(swap_free).map(|(total, free)| total - free);
        reported.put_if_known(memory::SWAP_USED_BYTES.id(), swap_used);
        if has_total { Ok(()) } else { Err(self.file.not_understood("`MemTotal`")) }
    }
}

fn bytes(value: &str) -> Option<f64> {
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes as f64 * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, read, value};
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;

    #[test]
    fn lines_become_bytes() {
        let fixture = Fixture::new().with(
            "proc/meminfo",
            "MemTotal:       16308156 kB\nMemFree:    1000 kB\nMemAvailable:  9000 kB\n\
             Buffers: 7 kB\nCached: 8000 kB\nSwapCached: 1 kB\nSwapTotal: 500 kB\nSwapFree: 100 kB\n\
             Dirty: 3 kB\nWriteback: 2 kB\nAnonPages: 6000 kB\nSlab: 50 kB\nAnonHugePages: 4 kB\n\
             HugePages_Total: 5\nHugepagesize: 2048 kB\nHugetlb: 10240 kB\n",
        );
        let reported = read(&mut Memory::new(fixture.root()), 1.0);
        assert_values(
            &reported,
            &[
                ("memory.total_bytes", 16_308_156.0 * 1024.0),
                ("memory.free_bytes", 1_024_000.0),
                ("memory.available_bytes", 9_216_000.0),
                ("memory.buffers_bytes", 7_168.0),
                ("memory.cached_bytes", 8_192_000.0),
                ("memory.dirty_bytes", 3_072.0),
                ("memory.writeback_bytes", 2_048.0),
                ("memory.anonymous_bytes", 6_144_000.0),
                ("memory.slab_bytes", 51_200.0),
                ("memory.transparent_hugepages_bytes", 4_096.0),
                ("memory.hugepages_bytes", 10_485_760.0),
                ("memory.swap_used_bytes", 409_600.0),
            ],
        );
        assert_eq!((reported.values.len(), reported.missing.len()), (12, 0));
    }

    #[test]
    fn memory_figures_are_absent_when_the_kernel_omits_them() {
        let fixture = Fixture::new().with("proc/meminfo", "MemTotal: 9 kB\nSwapTotal: 0 kB\n");
        let reported = read(&mut Memory::new(fixture.root()), 1.0);
        assert_eq!(reported.values.len(), 1);
        assert_eq!(value(&reported, "memory.swap_used_bytes"), None);
        let fixture = fixture.with("proc/meminfo", "MemTotal: many kB\nMemFree: 1 MB\n");
        let reported = read(&mut Memory::new(fixture.root()), 1.0);
        assert!(reported.values.is_empty());
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Degraded { .. })));
    }
}
