//! Text of a selfcheck.

use dyno_engine::selfcheck::Selfcheck;
use dyno_record::quantity::Quantity;
use std::fmt::Write as _;

/// Formats a selfcheck as a table.
pub(crate) fn human(selfcheck: &Selfcheck) -> String {
    let closed = &selfcheck.closed_loop;
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<28}{value}");
    };
    line("machine", selfcheck.machine.cpu_model.clone().unwrap_or_else(|| "unknown".into()));
    line(
        "highest rate of one core",
        Quantity::per_second(selfcheck.max_rate_per_core_per_s).to_string(),
    );
    let rate = Quantity::per_second(closed.rate_per_s);
    line("closed loop", format!("{rate} with {} connections on one core", closed.connections));
    line(
        "CPU per operation",
        format!(
            "{} ({} user, {} system)",
            Quantity::microseconds(closed.cpu_us_per_operation),
            Quantity::microseconds(closed.cpu_user_us_per_operation),
            Quantity::microseconds(closed.cpu_system_us_per_operation)
        ),
    );
    line("memory", Quantity::bytes(closed.max_rss_bytes).to_string());
    for rate in &selfcheck.constant_rates {
        let delay = &rate.start_delay_us;
        line(
            &format!("constant {}", Quantity::per_second(rate.offered_rate_per_s)),
            format!(
                "achieved {}, start delay p50 {}, p99 {}, max {}",
                Quantity::ratio(rate.achieved_ratio),
                Quantity::microseconds(delay.p50),
                Quantity::microseconds(delay.p99),
                Quantity::microseconds(delay.max)
            ),
        );
    }
    text
}
