#![doc = "Starts a server, measures workload C on it for three seconds, and prints three numbers."]
#![allow(clippy::print_stdout, reason = "it is a program")]

use dyno_engine::{Cancel, Observer, RunOptions, run};
use dyno_plan::{Request, resolve};
use dyno_record::interval::IntervalRecord;
use dyno_results::AnalysedRun;

/// Counts the recording windows.
struct Windows(u32);

impl Observer for Windows {
    fn window(&mut self, _: &IntervalRecord) {
        self.0 += 1;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options =
        RunOptions { out: std::env::args_os().nth(1).map(Into::into), ..RunOptions::default() };
    options.environment.path = std::env::var_os("PATH");
    options.environment.data_dir = std::env::var_os("DYNO_DATA_DIR").map(Into::into);
    let mut request = Request { source: Some("c".into()), ..Request::default() };
    request.overrides.records = Some(1_000);
    request.overrides.duration = Some("3s".parse()?);
    let task = resolve(&request, &options.environment)?;
    let mut windows = Windows(0);
    let finished = run(&task, &options, &mut windows, &Cancel::new())?.ok_or("nothing to do")?;
    let results = AnalysedRun::open(&finished.results.run.directory)?;
    let phase = results.run.document.phases.last().ok_or("no phase")?;
    let read = &phase.operations["read"];
    let (rate, p99) = (read.rate_per_s, read.response_time_us.p99);
    println!("{} windows, {rate:.0} reads/s, p99 {p99:.0} µs", windows.0);
    Ok(())
}
