//! Traffic of each network interface, including loopback, which carries the traffic to local
//! servers.

use super::file::{KeptFile, numbers};
use super::part::Part;
use crate::health::Reading;
use crate::host::line;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, network};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Metrics with their fields of `/proc/net/dev`; fields of both directions are summed.
/// Source: `proc_pid_net(5)`.
const METRICS: [(Metric, &[usize]); 6] = [
    (network::RECEIVED_BYTES_PER_S, &[0]),
    (network::SENT_BYTES_PER_S, &[8]),
    (network::RECEIVED_PACKETS_PER_S, &[1]),
    (network::SENT_PACKETS_PER_S, &[9]),
    (network::ERRORS_PER_S, &[2, 10]),
    (network::DROPPED_PER_S, &[3, 11]),
];
const COLUMNS: usize = 16;

/// The speed of a link changes rarely, when it is plugged in again.
const SPEED_INTERVAL_S: f64 = 10.0;
/// Values that drivers report for an unknown speed, in Mbit/s: -1, in 16 or 32 bits.
const NO_SPEEDS: [u64; 3] = [0, 65_535, 4_294_967_295];

/// The interfaces.
pub(super) struct Network {
    root: PathBuf,
    file: KeptFile,
    rates: Rates,
    speeds_bytes_per_s: HashMap<String, Option<f64>>,
    /// When to read the speeds again.
    speeds_due_s: f64,
}

impl Network {
    pub(super) fn new(root: &Path) -> Network {
        Network {
            root: root.to_owned(),
            file: KeptFile::new(root, "proc/net/dev"),
            rates: Rates::default(),
            speeds_bytes_per_s: HashMap::new(),
            speeds_due_s: f64::MIN,
        }
    }
}

impl Part for Network {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        let text = self.file.read()?;
        self.rates.begin(at_s);
        if at_s >= self.speeds_due_s {
            self.speeds_due_s = at_s + SPEED_INTERVAL_S;
            self.speeds_bytes_per_s.clear();
        }
        let mut not_understood = false;
        // Skip two title lines.
        for line in text.lines().skip(2) {
            let Some((name, columns)) = parse(line) else {
                not_understood = true;
                continue;
            };
            let total = |places: &[usize]| {
                places.iter().fold(0_u64, |sum, place| sum.saturating_add(columns[*place]))
            };
            // Skip interfaces that never carried traffic.
            if METRICS[..2].iter().all(|&(_, bytes)| total(bytes) == 0) {
                continue;
            }
            let known = self.speeds_bytes_per_s.entry(name.to_owned());
            let speed = *known.or_insert_with(|| speed_bytes_per_s(&self.root, name));
            reported.put_if_known(network::SPEED_BYTES_PER_S.of(name), speed);
            for (metric, places) in METRICS {
                reported.put_rate(&mut self.rates, metric.of(name), Some(total(places)), 1.0);
            }
        }
        if not_understood {
            Err(self.file.not_understood("counters in some of its lines"))
        } else {
            Ok(())
        }
    }
}

/// The name of an interface and its counters.
fn parse(line: &str) -> Option<(&str, [u64; COLUMNS])> {
    // The name of an alias contains a colon itself.
    let (name, rest) = line.rsplit_once(':')?;
    let mut columns = [0; COLUMNS];
    let mut count = 0;
    for (column, number) in columns.iter_mut().zip(numbers(rest)) {
        *column = number?;
        count += 1;
    }
    (count == COLUMNS).then(|| (name.trim(), columns))
}

fn speed_bytes_per_s(root: &Path, name: &str) -> Option<f64> {
    // Loopback and many virtual interfaces have none, or report an error.
    let speed = line(root, &format!("sys/class/net/{name}/speed")).ok()?;
    let megabits = speed.parse::<u64>().ok().filter(|speed| !NO_SPEEDS.contains(speed))?;
    Some(megabits as f64 * 1e6 / 8.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, names, read, value};
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;

    const TITLES: &str = "Inter-|   Receive                            |  Transmit\n face |bytes    packets errs \
        drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n";

    fn devices(lines: &[&str]) -> String {
        format!("{TITLES}{}\n", lines.join("\n"))
    }

    #[test]
    fn interfaces_with_traffic_report_both_directions() {
        let fixture = Fixture::new()
            .with("sys/class/net/eth0/speed", "10000\n")
            .with("sys/class/net/lo/speed", "-1\n")
            .with(
                "proc/net/dev",
                &devices(&[
                    "    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0",
                    "  ifb0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                    "eth0:1:500 5 1 2 0 0 0 0 700 7 3 4 0 0 0 0",
                    "  eth0: 500 5 1 2 0 0 0 0 700 7 3 4 0 0 0 0",
                ]),
            );
        let mut network = Network::new(fixture.root());
        let reported = read(&mut network, 1.0);
        assert_values(&reported, &[("network.eth0.speed_bytes_per_s", 1.25e9)]);
        assert_eq!(reported.values.len(), 1);
        let fixture = fixture.with(
            "proc/net/dev",
            &devices(&[
                "    lo: 900 10 0 0 0 0 0 0 1000 30 0 0 0 0 0 0",
                "  ifb0: 8 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                "  eth0: 2500 25 2 4 0 0 0 0 4700 17 4 6 0 0 0 0",
            ]),
        );
        let reported = read(&mut network, 3.0);
        assert_values(
            &reported,
            &[
                ("network.eth0.received_bytes_per_s", 1000.0),
                ("network.eth0.sent_bytes_per_s", 2000.0),
                ("network.eth0.received_packets_per_s", 10.0),
                ("network.eth0.sent_packets_per_s", 5.0),
                ("network.eth0.errors_per_s", 1.0),
                ("network.eth0.dropped_per_s", 2.0),
                ("network.lo.sent_packets_per_s", 10.0),
            ],
        );
        assert_eq!(value(&reported, "network.lo.received_bytes_per_s"), None);
        assert_eq!(names(&reported, "network.ifb0."), [""; 0]);
        assert_eq!(names(&reported, "network.eth0:1."), [""; 0]);
        drop(fixture);
    }

    #[test]
    fn link_speed_is_read_again_after_some_time() {
        let line = devices(&["eth0: 5 5 1 2 0 0 0 0 700 7 3 4 0 0 0 0"]);
        let fixture = Fixture::new().with("proc/net/dev", &line);
        let mut network = Network::new(fixture.root());
        assert!(read(&mut network, 1.0).values.is_empty());
        let _fixture = fixture.with("sys/class/net/eth0/speed", "1000\n");
        let speed = |reported: Reported| value(&reported, "network.eth0.speed_bytes_per_s");
        assert_eq!(speed(read(&mut network, 2.0)), None);
        assert_eq!(speed(read(&mut network, 11.0)), Some(1.25e8));
    }

    #[test]
    fn returning_interface_starts_anew_and_garbage_is_reported() {
        let line = "eth0: 5 5 1 2 0 0 0 0 700 7 3 4 0 0 0 0";
        let fixture = Fixture::new().with("proc/net/dev", &devices(&[line]));
        let mut network = Network::new(fixture.root());
        read(&mut network, 1.0);
        let fixture = fixture.with("proc/net/dev", &devices(&["eth1: 1 2 3"]));
        let reported = read(&mut network, 2.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Degraded { .. })));
        let _fixture = fixture.with("proc/net/dev", &devices(&[line]));
        assert!(read(&mut network, 3.0).values.is_empty());
        assert_eq!(read(&mut network, 4.0).values.len(), 6);
    }
}
