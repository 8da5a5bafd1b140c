//! `make bench`: cost of the load engine compared with a bare loop, accuracy of a rate, memory use, and correctness of numbers with
//! a known truth. Prints figures and ratios without a judgement, because the machines it runs on are shared.
//!
//! Each side runs in a separate process (this program with a role), so that CPU time and memory belong to one side.

mod bare;
mod measure;
mod truth;
mod verdict;

use anyhow::{Context, Result, bail};
use dyno_load::responder::{Behaviour, Responder};
use dyno_plan::model::Schedule;
use measure::{Cost, EngineLoad, MAX_START_DELAY, RESPONDER_CORE};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use verdict::Subject;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["responder", behaviour] => responder(behaviour),
        ["bare", address, load] => {
            print_json(&measure::bare(address.parse()?, &serde_json::from_str(load)?)?)
        }
        ["engine", address, load] => {
            print_json(&measure::engine(address.parse()?, &serde_json::from_str(load)?)?)
        }
        [] => {
            cost()?;
            rate()?;
            memory()?;
            truth::stall()?;
            truth::queue()?;
            truth::faults()
        }
        ["verdict", "--mongod", program, rest @ ..] => {
            verdict(&Subject::Mongod(Path::new(program).to_owned()), rest)
        }
        ["verdict", rest @ ..] => verdict(&Subject::Embedded, rest),
        _ => bail!(USAGE),
    }
}

const USAGE: &str = "usage: dyno-bench [verdict [--mongod PATH] [NAME [FOLDER]]]";

/// `rest` is a part of the scenario names, and a folder for recorded runs.
fn verdict(subject: &Subject, rest: &[&str]) -> Result<()> {
    let (filter, keep) = match rest {
        [] => ("", None),
        [filter] => (*filter, None),
        [filter, folder] => (*filter, Some(Path::new(folder))),
        _ => bail!(USAGE),
    };
    verdict::all(&verdict::program(), subject, filter, keep)
}

fn print_json(value: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(value)?);
    Ok(())
}

/// Serves until standard input closes.
fn responder(behaviour: &str) -> Result<()> {
    measure::pin(RESPONDER_CORE)?;
    let responder = Responder::start(serde_json::from_str(behaviour)?)?;
    println!("{}", responder.address());
    std::io::stdout().flush()?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// A responder in a separate process; ends on drop.
pub struct ResponderProcess {
    child: Child,
    pub address: SocketAddr,
}

impl ResponderProcess {
    pub fn start(behaviour: &Behaviour) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["responder", &serde_json::to_string(behaviour)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let address = line.trim().parse().context("the responder printed no address")?;
        Ok(ResponderProcess { child, address })
    }
}

impl Drop for ResponderProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends when its input closes; a failed wait needs no handling.
        let _ = self.child.wait();
    }
}

/// Runs this program in `role`, and reads its measurement.
pub fn in_process(role: &str, address: SocketAddr, load: &EngineLoad) -> Result<Cost> {
    let output = Command::new(std::env::current_exe()?)
        .args([role, &address.to_string(), &serde_json::to_string(load)?])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("the {role} process failed");
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn null_responder() -> Result<ResponderProcess> {
    ResponderProcess::start(&Behaviour::default())
}

/// Alternates bare loop and engine, so that a drift of the machine favours neither.
fn cost() -> Result<()> {
    const ROUNDS: usize = 5;
    println!(
        "Client cost: 32 connections, reads of 1 KB, client on core 0, null responder on core 1"
    );
    println!(
        "{:<8}{:>14}{:>12}{:>12}{:>14}",
        "", "operations/s", "CPU us/op", "user us/op", "system us/op"
    );
    let load = EngineLoad { duration: Duration::from_secs(4), ..Default::default() };
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        let responder = null_responder()?;
        let bare = in_process("bare", responder.address, &load)?;
        let engine = in_process("engine", responder.address, &load)?;
        bare.print("bare");
        engine.print("engine");
        pairs.push((bare, engine));
    }
    let ratio = |figure: fn(&Cost) -> f64| {
        median(pairs.iter().map(|(bare, engine)| figure(engine) / figure(bare)).collect())
    };
    println!("engine / bare, median of {ROUNDS} pairs:");
    println!("  rate                  {:.3}   (aim: at least 0.90)", ratio(Cost::rate_per_s));
    println!(
        "  CPU per operation     {:.3}   (aim: at most 1.10)",
        ratio(Cost::cpu_us_per_operation)
    );
    let user = median(pairs.iter().map(|(_, engine)| engine.user_us_per_operation()).collect());
    println!("  user time, engine     {user:.2} us per operation   (aim: at most 1.5)");
    println!("  Little ratio, engine  {}", little(pairs.iter().map(|(_, engine)| engine)));
    println!();
    Ok(())
}

/// Smallest and largest ratio of Little's law in these measurements.
fn little<'a>(costs: impl Iterator<Item = &'a Cost>) -> String {
    let ratios: Vec<f64> = costs.filter_map(|cost| cost.record.as_ref()?.little_ratio).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{least:.4} to {most:.4}   (aim: within 2 % of 1)")
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn rate() -> Result<()> {
    println!("Constant rate against the null responder, 32 connections, 10 s each");
    println!(
        "{:>10}{:>14}{:>16}{:>16}{:>16}{:>12}",
        "offered/s", "achieved/s", "off by", "delay p50 us", "delay p99 us", "CPU us/op"
    );
    let mut costs = Vec::new();
    for rate_per_s in [1_000.0, 5_000.0, 20_000.0, 40_000.0] {
        let responder = null_responder()?;
        let load = EngineLoad {
            schedule: Schedule::Constant { rate_per_s, max_start_delay: MAX_START_DELAY },
            duration: Duration::from_secs(10),
            ..Default::default()
        };
        let cost = in_process("engine", responder.address, &load)?;
        println!(
            "{rate_per_s:>10.0}{:>14.1}{:>15.4}%{:>16.1}{:>16.1}{:>12.2}",
            cost.rate_per_s(),
            (cost.rate_per_s() / rate_per_s - 1.0) * 100.0,
            cost.start_delay_p50_us,
            cost.start_delay_p99_us,
            cost.cpu_us_per_operation()
        );
        costs.push(cost);
    }
    println!("  (aim at 20000/s: off by at most 0.1 %, start delay p99 at most 100 us)");
    println!("  Little ratio          {}", little(costs.iter()));
    println!();
    Ok(())
}

fn memory() -> Result<()> {
    println!("Memory with 256 connections, closed loop");
    for seconds in [5, 20, 40] {
        let responder = null_responder()?;
        let load = EngineLoad {
            clients: 256,
            duration: Duration::from_secs(seconds),
            ..Default::default()
        };
        let cost = in_process("engine", responder.address, &load)?;
        println!(
            "  {seconds:>3} s: {:>6.1} MiB, {:>10} operations   (aim: at most 64 MiB for any length)",
            cost.max_rss_bytes as f64 / 1_048_576.0,
            cost.operations
        );
    }
    println!();
    Ok(())
}
