//! CPU frequencies and temperatures. Reading them disturbs: on some machines the kernel interrupts
//! each CPU to determine its frequency, or asks firmware for a temperature. So they are read and
//! reported only once in ten seconds.

use super::part::Part;
use crate::health::{Health, Reading};
use crate::host::{field, line, number, online_list, text};
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;
use dyno_record::names::{frequency, temperature};
use std::fs;
use std::path::{Path, PathBuf};

/// Time between two readings, slightly less than ten intervals of a second.
const INTERVAL_S: f64 = 9.5;

/// Chips that ask a disk for its temperature, which delays the disk's own work.
const CHIPS_OF_DISKS: [&str; 2] = ["drivetemp", "nvme"];

/// Plausible temperatures in degrees Celsius; outside this range the sensor is not connected.
const CELSIUS: std::ops::RangeInclusive<f64> = -60.0..=200.0;

/// Schedule of the readings.
struct Schedule {
    due_s: f64,
}

impl Schedule {
    fn new() -> Schedule {
        Schedule { due_s: f64::MIN }
    }

    fn is_due(&mut self, at_s: f64) -> bool {
        let is_due = at_s >= self.due_s;
        if is_due {
            self.due_s = at_s + INTERVAL_S;
        }
        is_due
    }
}

/// The frequencies of all online cores.
pub(super) struct Frequency {
    root: PathBuf,
    schedule: Schedule,
}

impl Frequency {
    pub(super) fn new(root: &Path) -> Frequency {
        Frequency { root: root.to_owned(), schedule: Schedule::new() }
    }
}

impl Part for Frequency {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        if !self.schedule.is_due(at_s) {
            return Ok(());
        }
        let mut found_hz = of_driver(&self.root);
        if found_hz.is_empty() {
            found_hz = of_cpuinfo(&self.root)?;
        }
        if found_hz.is_empty() {
            return Err(Health::unsupported("this machine reports no CPU frequency"));
        }
        let mean_hz = found_hz.iter().sum::<f64>() / found_hz.len() as f64;
        let lowest_hz = found_hz.iter().copied().fold(f64::INFINITY, f64::min);
        reported.put(frequency::MEAN_HZ.id(), mean_hz);
        reported.put(frequency::MIN_HZ.id(), lowest_hz);
        Ok(())
    }
}

/// Frequencies reported by the driver of the CPUs; none without a driver.
fn of_driver(root: &Path) -> Vec<f64> {
    let cores = online_list(root).unwrap_or_default();
    let of_core = |core: u64| {
        let path = format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        number(root, &path).map(|kilohertz| kilohertz as f64 * 1e3)
    };
    // If the first core has none, no other core has.
    cores.into_iter().map_while(|core| of_core(core).ok()).collect()
}

/// Frequencies in `/proc/cpuinfo`, which not all architectures have.
fn of_cpuinfo(root: &Path) -> Reading<Vec<f64>> {
    let text = text(root, "proc/cpuinfo")?;
    let megahertz = text.split("\n\n").filter_map(|core| field(core, "cpu MHz"));
    let hertz = megahertz.filter_map(|value| Some(value.parse::<f64>().ok()? * 1e6));
    Ok(hertz.filter(|hertz| *hertz > 0.0).collect())
}

/// The temperatures of thermal zones and chips.
pub(super) struct Temperature {
    root: PathBuf,
    schedule: Schedule,
    /// File below the root, and metric; found at the first reading.
    sensors: Option<Vec<(String, MetricId)>>,
}

impl Temperature {
    pub(super) fn new(root: &Path) -> Temperature {
        Temperature { root: root.to_owned(), schedule: Schedule::new(), sensors: None }
    }
}

impl Part for Temperature {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        if !self.schedule.is_due(at_s) {
            return Ok(());
        }
        let sensors = self.sensors.get_or_insert_with(|| find_sensors(&self.root));
        let mut has_reported = false;
        for (file, id) in sensors {
            // Sensors of devices that sleep or do not exist answer with an error.
            let celsius = line(&self.root, file).ok().and_then(|text| {
                let thousandths: i64 = text.parse().ok()?;
                Some(thousandths as f64 / 1e3)
            });
            let celsius = celsius.filter(|celsius| CELSIUS.contains(celsius));
            has_reported |= celsius.is_some();
            reported.put_if_known(id.clone(), celsius);
        }
        if has_reported { Ok(()) } else { Err(Health::unsupported("no readable sensor")) }
    }
}

/// All thermal zones, and the first sensor of each chip, which drivers of CPUs use for the whole
/// package.
fn find_sensors(root: &Path) -> Vec<(String, MetricId)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for folder in folders(root, "sys/class/thermal", "thermal_zone") {
        if let Ok(name) = line(root, &format!("{folder}/type")) {
            found.push((format!("{folder}/temp"), name));
        }
    }
    let zones: Vec<String> = found.iter().map(|(_, name)| name.clone()).collect();
    for folder in folders(root, "sys/class/hwmon", "hwmon") {
        let Ok(name) = line(root, &format!("{folder}/name")) else {
            continue;
        };
        let file = format!("{folder}/temp1_input");
        // Zones appear as chips as well.
        let is_known = zones.contains(&name) || CHIPS_OF_DISKS.contains(&name.as_str());
        if !is_known && root.join(&file).exists() {
            found.push((file, name));
        }
    }
    let mut sensors: Vec<(String, MetricId)> = Vec::new();
    for (file, name) in found {
        let id = |instance: &str| temperature::CELSIUS.of(instance);
        let is_free = |id: &MetricId| !sensors.iter().any(|(_, known)| known == id);
        // A second socket has sensors of the same names.
        let numbered = (2..).map(|number| id(&format!("{name}-{number}")));
        let mut ids = std::iter::once(id(&name)).chain(numbered);
        let free = ids.find(is_free);
        sensors.extend(free.map(|id| (file, id)));
    }
    sensors
}

/// Folders with a name of `begin` and a number, in the order of the numbers.
fn folders(root: &Path, path: &str, begin: &str) -> Vec<String> {
    let mut numbers: Vec<u64> = fs::read_dir(root.join(path))
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.strip_prefix(begin)?.parse().ok()
        })
        .collect();
    numbers.sort_unstable();
    let folder = |number| format!("{path}/{begin}{number}");
    numbers.into_iter().map(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, names, read};
    use super::*;
    use crate::host::tests::Fixture;

    #[test]
    fn driver_reports_the_frequency_of_each_online_core() {
        let file = |core| format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        let fixture = Fixture::new()
            .with("sys/devices/system/cpu/online", "0,2\n")
            .with("proc/cpuinfo", "cpu MHz : 1.0\n")
            .with(&file(0), "2000000\n")
            .with(&file(1), "9000000\n")
            .with(&file(2), "3000000\n");
        let mut frequency = Frequency::new(fixture.root());
        let reported = read(&mut frequency, 5.0);
        assert_values(
            &reported,
            &[("frequency.all.mean_hz", 2.5e9), ("frequency.all.min_hz", 2e9)],
        );
        assert_eq!(read(&mut frequency, 14.0), Reported::default());
        let _fixture = fixture.with(&file(0), "1000000\n");
        let reported = read(&mut frequency, 15.0);
        assert_values(&reported, &[("frequency.all.min_hz", 1e9)]);
    }

    #[test]
    fn cpuinfo_reports_frequencies_without_a_driver() {
        let core = |number, megahertz| {
            format!("processor\t: {number}\ncpu MHz\t\t: {megahertz}\nflags\t\t: fpu\n\n")
        };
        let text = core(0, "2600.000") + &core(1, "1300.000");
        let fixture = Fixture::new().with("proc/cpuinfo", &text);
        let reported = read(&mut Frequency::new(fixture.root()), 1.0);
        assert_values(
            &reported,
            &[("frequency.all.mean_hz", 1.95e9), ("frequency.all.min_hz", 1.3e9)],
        );
        let fixture = fixture.with("proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd0c\n");
        let reported = read(&mut Frequency::new(fixture.root()), 1.0);
        assert!(reported.values.is_empty());
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Unsupported { .. })));
    }

    #[test]
    fn zones_and_chips_are_reported_once_each() {
        let fixture = Fixture::new()
            .with("sys/class/thermal/thermal_zone0/type", "acpitz\n")
            .with("sys/class/thermal/thermal_zone0/temp", "41500\n")
            .with("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
            .with("sys/class/thermal/thermal_zone1/temp", "60000\n")
            .with("sys/class/thermal/thermal_zone10/type", "x86_pkg_temp\n")
            .with("sys/class/thermal/thermal_zone10/temp", "61000\n")
            .with("sys/class/thermal/cooling_device0/type", "Fan\n")
            .with("sys/class/hwmon/hwmon0/name", "acpitz\n")
            .with("sys/class/hwmon/hwmon0/temp1_input", "41500\n")
            .with("sys/class/hwmon/hwmon1/name", "k10temp\n")
            .with("sys/class/hwmon/hwmon1/temp1_input", "-5250\n")
            .with("sys/class/hwmon/hwmon2/name", "nvme\n")
            .with("sys/class/hwmon/hwmon2/temp1_input", "30000\n")
            .with("sys/class/hwmon/hwmon3/name", "iwlwifi\n")
            .with("sys/class/hwmon/hwmon3/temp1_input", "-274000\n");
        let reported = read(&mut Temperature::new(fixture.root()), 1.0);
        assert_values(
            &reported,
            &[
                ("temperature.acpitz.celsius", 41.5),
                ("temperature.x86_pkg_temp.celsius", 60.0),
                ("temperature.x86_pkg_temp-2.celsius", 61.0),
                ("temperature.k10temp.celsius", -5.25),
            ],
        );
        assert_eq!(names(&reported, "").len(), 4);
        assert!(reported.missing.is_empty());
    }

    #[test]
    fn machine_without_sensors_is_unsupported() {
        let fixture = Fixture::new().with("sys/class/thermal/thermal_zone0/type", "broken\n");
        let reported = read(&mut Temperature::new(fixture.root()), 1.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Unsupported { .. })));
    }
}
