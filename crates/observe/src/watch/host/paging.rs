//! Transfers between memory and disks, and the cost of memory shortage.

use super::file::KeptFile;
use super::part::Part;
use crate::health::Reading;
use crate::process::page_bytes;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, paging};
use std::path::Path;

/// Lines of `/proc/vmstat`, their metrics and units; `pgpgin` and `pgpgout` count KiB.
pub(in crate::watch) const LINES: &[(&str, Metric, Unit)] = &[
    (FIRST, paging::IN_BYTES_PER_S, Unit::Kibibyte),
    ("pgpgout", paging::OUT_BYTES_PER_S, Unit::Kibibyte),
    ("pswpin", paging::SWAP_IN_BYTES_PER_S, Unit::Page),
    ("pswpout", paging::SWAP_OUT_BYTES_PER_S, Unit::Page),
    ("pgmajfault", paging::MAJOR_FAULTS_PER_S, Unit::One),
    ("oom_kill", paging::OOM_KILLS_PER_S, Unit::One),
];
const FIRST: &str = "pgpgin";

/// Prefix of the lines, one per memory zone, that count tasks which had to free memory themselves.
const RECLAIM: &str = "allocstall";

#[derive(Clone, Copy)]
pub(in crate::watch) enum Unit {
    One,
    Kibibyte,
    Page,
}

impl Unit {
    /// Factor from this unit to the metric's, on a machine with pages of this size.
    pub(in crate::watch) fn factor(self, page_bytes: f64) -> f64 {
        match self {
            Unit::One => 1.0,
            Unit::Kibibyte => 1024.0,
            Unit::Page => page_bytes,
        }
    }
}

/// The paging.
pub(super) struct Paging {
    file: KeptFile,
    rates: Rates,
}

impl Paging {
    pub(super) fn new(root: &Path) -> Paging {
        Paging { file: KeptFile::new(root, "proc/vmstat"), rates: Rates::default() }
    }
}

impl Part for Paging {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        let text = self.file.read()?;
        self.rates.begin(at_s);
        let (mut is_understood, mut reclaims) = (false, None);
        for line in text.lines() {
            let Some((name, total)) = line.split_once(' ') else {
                continue;
            };
            let total = || total.trim().parse::<u64>().ok();
            if name.starts_with(RECLAIM) {
                let sum: u64 = reclaims.unwrap_or(0);
                reclaims = total().map(|total| total.saturating_add(sum));
            } else if let Some((_, metric, unit)) = LINES.iter().find(|(line, ..)| *line == name) {
                let total = total();
                is_understood |= name == FIRST && total.is_some();
                let factor = unit.factor(page_bytes() as f64);
                reported.put_rate(&mut self.rates, metric.id(), total, factor);
            }
        }
        let metric = paging::RECLAIM_DIRECT_PER_S;
        reported.put_rate(&mut self.rates, metric.id(), reclaims, 1.0);
        if is_understood { Ok(()) } else { Err(self.file.not_understood("`pgpgin`")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, read, value};
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;

    #[test]
    fn pages_and_kibibytes_become_bytes_per_second() {
        let fixture = Fixture::new().with(
            "proc/vmstat",
            "pgpgin 100\npgpgout 200\npswpin 10\npswpout 20\npgmajfault 7\nallocstall_dma 1\n\
             allocstall_normal 5\noom_kill 0\n",
        );
        let mut paging = Paging::new(fixture.root());
        assert_eq!(read(&mut paging, 1.0), Reported::default());
        let fixture = fixture.with(
            "proc/vmstat",
            "pgpgin 104\npgpgout 300\npswpin 12\npswpout 20\npgmajfault 17\nallocstall_dma 3\n\
             allocstall_normal 11\noom_kill 1\n",
        );
        let reported = read(&mut paging, 3.0);
        let page_bytes = page_bytes() as f64;
        assert_values(
            &reported,
            &[
                ("paging.in_bytes_per_s", 2048.0),
                ("paging.out_bytes_per_s", 51_200.0),
                ("paging.swap_in_bytes_per_s", page_bytes),
                ("paging.swap_out_bytes_per_s", 0.0),
                ("paging.major_faults_per_s", 5.0),
                ("paging.reclaim_direct_per_s", 4.0),
                ("paging.oom_kills_per_s", 0.5),
            ],
        );
        // An older kernel, and a counter that decreased.
        let _fixture = fixture.with("proc/vmstat", "pgpgin 4\npgpgout 300\nallocstall 90\n");
        let reported = read(&mut paging, 4.0);
        assert_eq!(value(&reported, "paging.in_bytes_per_s"), None);
        assert_eq!(value(&reported, "paging.oom_kills_per_s"), None);
        assert_values(
            &reported,
            &[("paging.out_bytes_per_s", 0.0), ("paging.reclaim_direct_per_s", 76.0)],
        );
    }

    #[test]
    fn garbage_in_vmstat_is_degraded() {
        let fixture = Fixture::new().with("proc/vmstat", "pgpgin\npgpgin x\n");
        let reported = read(&mut Paging::new(fixture.root()), 1.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Degraded { .. })));
    }
}
