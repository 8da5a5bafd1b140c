//! `dyno selfcheck`: measures the load generator itself and stores the result.

use crate::args::tools::SelfcheckArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use dyno_engine::selfcheck::{Selfcheck, measure::measure, state};
use dyno_engine::{Error, Kind};
use dyno_record::quantity::Quantity;
use std::fmt::Write as _;

/// Executes `dyno selfcheck`.
pub(crate) fn selfcheck(
    arguments: &SelfcheckArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let mut messages = invocation.messages;
    let result = measure(
        arguments.duration.0,
        arguments.clients,
        invocation.environment(),
        &mut messages,
        invocation.cancel,
    )?;
    arguments.format.print(&result, human)?;
    if arguments.no_save {
        if let Some(busy) = result.caveat() {
            messages.warning(&format!("the figures are too low: {}", busy.found));
        }
        return Ok(Exit::Done);
    }
    let state_dir = invocation.environment().state_dir.as_deref();
    let folder = state_dir.ok_or_else(|| {
        Error::new(Kind::Environment, "cannot store the result: `HOME` is not set")
            .with_hint("name a folder with `--state-dir`, or pass `--no-save`")
    })?;
    let path = state::write(folder, &result)?;
    messages.note(&format!("stored in {}", path.display()));
    Ok(Exit::Done)
}

/// Formats a selfcheck as a table.
fn human(selfcheck: &Selfcheck) -> String {
    let closed = &selfcheck.closed_loop;
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<28}{value}");
    };
    line("machine", selfcheck.machine.cpu_model.clone().unwrap_or_else(|| "unknown".into()));
    let rate = Quantity::per_second(closed.rate_per_s);
    let busy = Quantity::ratio(closed.core_busy_ratio);
    line(
        "closed loop",
        format!("{rate} with {} connections on one core, {busy} busy", closed.connections),
    );
    line(
        "CPU per operation",
        format!(
            "{} ({} user, {} system)",
            Quantity::microseconds(closed.cpu_us_per_operation),
            Quantity::microseconds(closed.cpu_user_us_per_operation),
            Quantity::microseconds(closed.cpu_system_us_per_operation)
        ),
    );
    let highest = Quantity::per_second(selfcheck.max_rate_per_core_per_s);
    line(
        "highest rate of one core",
        format!("{highest}, if always busy at this cost; runs are compared with it"),
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
