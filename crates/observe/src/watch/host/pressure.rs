//! Pressure: the share of time in which tasks waited for a CPU, for disks, or for memory.
//! Source: `Documentation/accounting/psi.rst` of Linux.

use super::file::KeptFile;
use super::part::Part;
use crate::health::Reading;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, pressure};
use std::path::Path;

/// Prefixes of the meaningful lines of a resource with their metrics.
type Lines = &'static [(&'static str, Metric)];

/// Resources with their lines: on a whole machine, all tasks cannot wait for a CPU.
const RESOURCES: [(&str, Lines); 3] = [
    ("cpu", &[("some", pressure::CPU_SOME_RATIO)]),
    ("io", &[("some", pressure::IO_SOME_RATIO), ("full", pressure::IO_FULL_RATIO)]),
    ("memory", &[("some", pressure::MEMORY_SOME_RATIO), ("full", pressure::MEMORY_FULL_RATIO)]),
];

/// The three kinds of pressure.
pub(super) struct Pressure {
    files: [KeptFile; RESOURCES.len()],
    rates: Rates,
}

impl Pressure {
    pub(super) fn new(root: &Path) -> Pressure {
        let file = |(name, _): (&str, Lines)| KeptFile::new(root, &format!("proc/pressure/{name}"));
        Pressure { files: RESOURCES.map(file), rates: Rates::default() }
    }
}

impl Part for Pressure {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        self.rates.begin(at_s);
        let mut outcome = Ok(());
        for (file, (_, lines)) in self.files.iter_mut().zip(RESOURCES) {
            outcome = outcome.and(report(file, lines, &mut self.rates, reported));
        }
        outcome
    }
}

fn report(
    file: &mut KeptFile,
    lines: Lines,
    rates: &mut Rates,
    reported: &mut Reported,
) -> Reading<()> {
    let text = file.read()?;
    let mut is_whole = true;
    for (line, metric) in lines {
        let total_us = total_us(text, line);
        is_whole &= total_us.is_some();
        let us_per_s = total_us.and_then(|total_us| rates.per_s(&metric.id(), total_us as f64));
        // The kernel's clock and the clock of the readings are not read at the same time.
        reported.put_if_known(metric.id(), us_per_s.map(|us| (us / 1e6).min(1.0)));
    }
    if is_whole { Ok(()) } else { Err(file.not_understood("total of pressure")) }
}

fn total_us(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find(|text| text.starts_with(line))?;
    let (_, total) = line.rsplit_once("total=")?;
    total.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, names, read, value};
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;

    fn lines(some_us: u64, full_us: u64) -> String {
        let averages = "avg10=40.60 avg60=14.65 avg300=17.68";
        format!("some {averages} total={some_us}\nfull {averages} total={full_us}\n")
    }

    #[test]
    fn waiting_time_becomes_a_share_of_the_time() {
        let fixture = Fixture::new()
            .with("proc/pressure/cpu", &lines(1_000_000, 0))
            .with("proc/pressure/io", &lines(5_000_000, 1_000_000))
            .with("proc/pressure/memory", &lines(0, 0));
        let mut pressure = Pressure::new(fixture.root());
        assert_eq!(read(&mut pressure, 1.0), Reported::default());
        let _fixture = fixture
            .with("proc/pressure/cpu", &lines(1_500_000, 0))
            .with("proc/pressure/io", &lines(7_000_100, 1_200_000))
            .with("proc/pressure/memory", &lines(0, 0));
        let reported = read(&mut pressure, 3.0);
        assert_values(
            &reported,
            &[
                ("pressure.cpu.some_ratio", 0.25),
                ("pressure.io.some_ratio", 1.0),
                ("pressure.io.full_ratio", 0.1),
                ("pressure.memory.some_ratio", 0.0),
                ("pressure.memory.full_ratio", 0.0),
            ],
        );
        assert_eq!(names(&reported, "").len(), 5);
    }

    #[test]
    fn missing_pressure_is_unsupported_and_garbage_is_degraded() {
        let fixture = Fixture::new();
        let mut pressure = Pressure::new(fixture.root());
        let reported = read(&mut pressure, 1.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Unsupported { .. })));
        let fixture = fixture
            .with("proc/pressure/cpu", &lines(10, 0))
            .with("proc/pressure/io", "some avg10=0.00 total=many\n")
            .with("proc/pressure/memory", &lines(500, 0));
        let mut pressure = Pressure::new(fixture.root());
        read(&mut pressure, 1.0);
        let _fixture = fixture
            .with("proc/pressure/cpu", &lines(500_010, 0))
            .with("proc/pressure/memory", &lines(100, 0));
        let reported = read(&mut pressure, 2.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Degraded { .. })));
        // The other two are reported, except the decreased total.
        assert_values(&reported, &[("pressure.cpu.some_ratio", 0.5)]);
        assert_eq!(value(&reported, "pressure.io.some_ratio"), None);
        assert_eq!(value(&reported, "pressure.memory.some_ratio"), None);
        assert_values(&reported, &[("pressure.memory.full_ratio", 0.0)]);
    }
}
