//! Metrics of `node_exporter`.

use super::*;

/// A machine of two cores, a disk and two interfaces, `n` seconds after its start.
fn machine(n: f64) -> String {
    let mut text = String::new();
    let mut put = |line: &str, value: f64| text.push_str(&format!("{line} {value}\n"));
    for (core, idle) in [("0", 0.5), ("1", 0.25)] {
        for (mode, share) in [
            ("idle", idle),
            ("iowait", 0.1),
            ("irq", 0.01),
            ("nice", 0.0),
            ("softirq", 0.04),
            ("steal", 0.05),
            ("system", 0.1),
            ("user", 0.7 - idle),
        ] {
            let name = format!("node_cpu_seconds_total{{cpu=\"{core}\",mode=\"{mode}\"}}");
            put(&name, share * n);
        }
        let name = format!("node_cpu_guest_seconds_total{{cpu=\"{core}\",mode=\"user\"}}");
        put(&name, 0.05 * n);
    }
    put("node_cpu_scaling_frequency_hertz{cpu=\"0\"}", 2e9);
    put("node_cpu_scaling_frequency_hertz{cpu=\"1\"}", 3e9);
    for (name, per_s) in [
        ("reads_completed_total", 50.0),
        ("writes_completed_total", 100.0),
        ("discards_completed_total", 1.0),
        ("flush_requests_total", 0.0),
        ("read_bytes_total", 204_800.0),
        ("written_bytes_total", 819_200.0),
        ("read_time_seconds_total", 0.1),
        ("write_time_seconds_total", 0.3),
        ("flush_requests_time_seconds_total", 0.0),
        ("io_time_seconds_total", 1.01),
        ("io_time_weighted_seconds_total", 4.0),
    ] {
        put(&format!("node_disk_{name}{{device=\"vda\"}}"), per_s * n);
    }
    put("node_disk_io_now{device=\"vda\"}", 3.0);
    for mount in ["/", "/var"] {
        let labels = format!("{{device=\"/dev/vda1\",fstype=\"ext4\",mountpoint=\"{mount}\"}}");
        put(&format!("node_filesystem_avail_bytes{labels}"), 250.0);
        put(&format!("node_filesystem_size_bytes{labels}"), 1000.0);
    }
    let labels = "{device=\"tmpfs\",fstype=\"tmpfs\",mountpoint=\"/run\"}";
    put(&format!("node_filesystem_avail_bytes{labels}"), 1.0);
    for (interface, factor) in [("eth0", n), ("eth1", 0.0)] {
        for (name, per_s) in [
            ("receive_bytes_total", 1000.0),
            ("transmit_bytes_total", 2000.0),
            ("receive_packets_total", 10.0),
            ("transmit_packets_total", 20.0),
            ("receive_errs_total", 1.0),
            ("transmit_errs_total", 2.0),
            ("receive_drop_total", 3.0),
            ("transmit_drop_total", 0.0),
        ] {
            let name = format!("node_network_{name}{{device=\"{interface}\"}}");
            put(&name, per_s * factor);
        }
    }
    put("node_network_speed_bytes{device=\"eth0\"}", 1.25e8);
    for (name, per_s) in [
        ("pressure_cpu_waiting_seconds_total", 0.25),
        ("pressure_io_waiting_seconds_total", 0.5),
        ("pressure_io_stalled_seconds_total", 0.125),
        ("pressure_memory_waiting_seconds_total", 0.0),
        ("vmstat_pgpgin", 4.0),
        ("vmstat_pswpout", 2.0),
        ("netstat_Tcp_RetransSegs", 7.0),
        ("context_switches_total", 900.0),
        ("intr_total", 800.0),
    ] {
        put(&format!("node_{name}"), per_s * n);
    }
    for (name, value) in [
        ("procs_running", 5.0),
        ("load1", 1.5),
        ("memory_MemAvailable_bytes", 1e9),
        ("memory_SwapTotal_bytes", 100.0),
        ("memory_SwapFree_bytes", 40.0),
        ("memory_HugePages_Total", 3.0),
        ("memory_Hugepagesize_bytes", 2_097_152.0),
        ("netstat_Tcp_CurrEstab", 12.0),
        ("hwmon_temp_celsius{chip=\"platform_coretemp_0\",sensor=\"temp1\"}", 45.0),
        ("entropy_available_bits", 256.0),
    ] {
        put(&format!("node_{name}"), value);
    }
    text
}

#[test]
fn machine_metrics_have_the_names_of_the_host_source() {
    let reported = read_all(&[&machine(10.0), &machine(11.0)]);
    assert_values(
        &reported[1],
        &[
            ("cpu.0.user_ratio", 0.2 / 1.0),
            ("cpu.0.busy_ratio", 0.4),
            ("cpu.0.softirq_ratio", 0.05),
            ("cpu.1.user_ratio", 0.45),
            ("cpu.1.iowait_ratio", 0.1),
            ("cpu.1.steal_ratio", 0.05),
            ("cpu.all.user_ratio", 0.325),
            ("cpu.all.idle_ratio", 0.375),
            ("cpu.all.busy_ratio", 0.525),
            ("cpu.all.irq_ratio", 0.01),
            ("cpu.all.guest_ratio", 0.05),
            ("frequency.all.mean_hz", 2.5e9),
            ("frequency.all.min_hz", 2e9),
            ("disk.vda.read_per_s", 50.0),
            ("disk.vda.write_per_s", 100.0),
            ("disk.vda.read_bytes_per_s", 204_800.0),
            ("disk.vda.read_await_ms", 2.0),
            ("disk.vda.write_await_ms", 3.0),
            ("disk.vda.read_size_bytes", 4096.0),
            ("disk.vda.write_size_bytes", 8192.0),
            ("disk.vda.queue_count", 4.0),
            ("disk.vda.utilization_ratio", 1.0),
            ("disk.vda.in_flight_count", 3.0),
            ("storage.vda1.free_bytes", 250.0),
            ("storage.vda1.free_ratio", 0.25),
            ("network.eth0.received_bytes_per_s", 1000.0),
            ("network.eth0.sent_packets_per_s", 20.0),
            ("network.eth0.errors_per_s", 3.0),
            ("network.eth0.dropped_per_s", 3.0),
            ("network.eth0.speed_bytes_per_s", 1.25e8),
            ("pressure.cpu.some_ratio", 0.25),
            ("pressure.io.some_ratio", 0.5),
            ("pressure.io.full_ratio", 0.125),
            ("pressure.memory.some_ratio", 0.0),
            ("paging.in_bytes_per_s", 4096.0),
            ("paging.swap_out_bytes_per_s", 8192.0),
            ("tcp.retransmits_per_s", 7.0),
            ("tcp.established_count", 12.0),
            ("load.runnable_count", 5.0),
            ("load.average_1m_count", 1.5),
            ("load.context_switches_per_s", 900.0),
            ("interrupts.total_per_s", 800.0),
            ("memory.available_bytes", 1e9),
            ("memory.swap_used_bytes", 60.0),
            ("memory.hugepages_bytes", 6_291_456.0),
            ("temperature.platform_coretemp_0-temp1.celsius", 45.0),
            ("exporter.node_entropy_available_bits", 256.0),
        ],
    );
    let values = values(&reported[1]);
    // No flush ended, one interface carried nothing, and memory is not a file system.
    for name in
        ["disk.vda.flush_await_ms", "network.eth1.sent_bytes_per_s", "storage.tmpfs.free_bytes"]
    {
        assert!(!values.contains_key(name), "{name}");
    }
    // A metric with a name of our own is not reported twice.
    let others: Vec<&String> = values.keys().filter(|name| name.starts_with("exporter.")).collect();
    assert_eq!(others, ["exporter.node_entropy_available_bits"]);
    assert_eq!(reported[1].missing, []);
}

#[test]
fn first_reading_of_a_machine_has_no_shares_and_rates() {
    let reported = read_all(&[&machine(10.0)]);
    let values = values(&reported[0]);
    let are_gauges =
        ["_count", "_bytes", "_hz", "speed_bytes_per_s", "celsius", "free_ratio", "_bits"];
    for name in values.keys() {
        assert!(are_gauges.iter().any(|unit| name.ends_with(unit)), "{name}");
    }
    assert!(!values.contains_key("disk.vda.queue_count"));
}

#[test]
fn decreased_idle_time_has_not_grown() {
    let line = |core: u8, mode, value: f64| {
        format!("node_cpu_seconds_total{{cpu=\"{core}\",mode=\"{mode}\"}} {value}\n")
    };
    let first = line(0, "idle", 10.0) + &line(0, "user", 5.0);
    // A second core appears.
    let second = line(0, "idle", 9.99) + &line(0, "user", 5.5) + &line(1, "idle", 3.0);
    let reported = read_all(&[&first, &second]);
    assert_values(&reported[1], &[("cpu.0.user_ratio", 1.0), ("cpu.all.busy_ratio", 1.0)]);
    assert!(!values(&reported[1]).contains_key("cpu.1.busy_ratio"));
}

#[test]
fn parts_that_the_exporter_does_not_report_are_missing() {
    let reported = read_all(&["node_load1 1\nnode_procs_running 2\n"]);
    let parts: Vec<&str> = reported[0].missing.iter().map(|(part, _)| *part).collect();
    let expected = [
        "cpu",
        "pressure",
        "memory",
        "paging",
        "disk",
        "storage",
        "network",
        "tcp",
        "frequency",
        "temperature",
    ];
    assert_eq!(parts, expected);
    let reason = reported[0].missing[1].1.reason();
    let part = "`node_pressure_cpu_waiting_seconds_total`";
    assert!(reason.contains(part), "{reason}");
}
