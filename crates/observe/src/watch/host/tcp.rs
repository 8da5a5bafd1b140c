//! Activity of TCP over all connections of both address families.
//! Source of the names: `Documentation/networking/snmp_counter.rst` of Linux.

use super::file::KeptFile;
use super::part::Part;
use crate::health::Reading;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, tcp};
use std::path::Path;

/// Names in the lines `Tcp:`, and their metrics.
pub(in crate::watch) const COUNTERS: &[(&str, Metric)] = &[
    ("RetransSegs", tcp::RETRANSMITS_PER_S),
    ("OutSegs", tcp::SEGMENTS_SENT_PER_S),
    ("InSegs", tcp::SEGMENTS_RECEIVED_PER_S),
    ("OutRsts", tcp::RESETS_SENT_PER_S),
    ("PassiveOpens", tcp::PASSIVE_OPENS_PER_S),
    ("ActiveOpens", tcp::ACTIVE_OPENS_PER_S),
];
const ESTABLISHED: &str = "CurrEstab";
/// Name in the lines `TcpExt:`, which are in another file.
const OVERFLOWS: &str = "ListenOverflows";

/// The counters of TCP.
pub(super) struct Tcp {
    file: KeptFile,
    more: KeptFile,
    rates: Rates,
}

impl Tcp {
    pub(super) fn new(root: &Path) -> Tcp {
        Tcp {
            file: KeptFile::new(root, "proc/net/snmp"),
            more: KeptFile::new(root, "proc/net/netstat"),
            rates: Rates::default(),
        }
    }
}

impl Part for Tcp {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        let text = self.file.read()?;
        self.rates.begin(at_s);
        let number = |name: &str| -> Option<u64> {
            let mut found = table(text, "Tcp:");
            found.find(|(known, _)| *known == name)?.1.parse().ok()
        };
        let established = number(ESTABLISHED).map(|count| count as f64);
        reported.put_if_known(tcp::ESTABLISHED_COUNT.id(), established);
        for (name, metric) in COUNTERS {
            reported.put_rate(&mut self.rates, metric.id(), number(name), 1.0);
        }
        if COUNTERS.iter().any(|(name, _)| number(name).is_none()) {
            return Err(self.file.not_understood("some of the TCP counters"));
        }
        let text = self.more.read()?;
        let found = table(text, "TcpExt:").find(|(name, _)| *name == OVERFLOWS);
        let total = found.and_then(|(_, value)| value.parse().ok());
        reported.put_rate(&mut self.rates, tcp::LISTEN_OVERFLOWS_PER_S.id(), total, 1.0);
        match total {
            Some(_) => Ok(()),
            None => Err(self.more.not_understood("`ListenOverflows`")),
        }
    }
}

/// Names and values of the two lines with this prefix: names in the first, values in the second.
fn table<'a>(text: &'a str, begin: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(begin));
    let names = lines.next().unwrap_or("").split_ascii_whitespace();
    let values = lines.next().unwrap_or("").split_ascii_whitespace();
    names.zip(values)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, read, value};
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;

    fn snmp(values: &str) -> String {
        format!(
            "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
             Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens CurrEstab InSegs OutSegs RetransSegs OutRsts\n\
             Tcp: 1 -1 {values}\nUdp: InDatagrams\nUdp: 7\n"
        )
    }

    fn netstat(overflows: u64) -> String {
        format!(
            "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 {overflows} 9\n\
             IpExt: InNoRoutes\nIpExt: 0\n"
        )
    }

    #[test]
    fn counters_are_found_by_their_names() {
        let fixture = Fixture::new()
            .with("proc/net/snmp", &snmp("10 20 34 1000 2000 5 7"))
            .with("proc/net/netstat", &netstat(3));
        let mut tcp = Tcp::new(fixture.root());
        let reported = read(&mut tcp, 1.0);
        assert_values(&reported, &[("tcp.established_count", 34.0)]);
        assert_eq!((reported.values.len(), reported.missing.len()), (1, 0));
        let _fixture = fixture
            .with("proc/net/snmp", &snmp("12 40 35 1600 2800 9 3"))
            .with("proc/net/netstat", &netstat(5));
        let reported = read(&mut tcp, 3.0);
        assert_values(
            &reported,
            &[
                ("tcp.retransmits_per_s", 2.0),
                ("tcp.segments_sent_per_s", 400.0),
                ("tcp.segments_received_per_s", 300.0),
                ("tcp.passive_opens_per_s", 10.0),
                ("tcp.active_opens_per_s", 1.0),
                ("tcp.listen_overflows_per_s", 1.0),
                ("tcp.established_count", 35.0),
            ],
        );
        // It decreased.
        assert_eq!(value(&reported, "tcp.resets_sent_per_s"), None);
    }

    #[test]
    fn missing_and_truncated_tcp_counters_are_reported() {
        let fixture = Fixture::new().with("proc/net/snmp", &snmp("10 20 34 1000 2000 5 7"));
        let mut tcp = Tcp::new(fixture.root());
        let reported = read(&mut tcp, 1.0);
        assert_values(&reported, &[("tcp.established_count", 34.0)]);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Unsupported { .. })));
        let _fixture = fixture.with("proc/net/snmp", "Tcp: RetransSegs\n");
        let reported = read(&mut tcp, 2.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Degraded { .. })));
    }
}
