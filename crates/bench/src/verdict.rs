//! `make bench-verdict`: provokes known faults, lets `dyno` diagnose them, and prints its verdict next to the truth; also for runs
//! without a fault, in which it should find nothing.
//!
//! Needs root, loop devices, and a quiet machine: other activity counts as a fault and is found.

mod golden;

use anyhow::{Context, Result, bail};
use dyno_testkit::fault::{CpuQuota, DiskThrottle, FileSystem, LoopDisk, Neighbour, is_root};
use serde_json::Value;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest time for one run, with its load phase.
const RUN_LIMIT: Duration = Duration::from_secs(300);
/// Size of the disk for faults, in MiB.
const DISK_MIB: u64 = 4_096;

/// A fault and its time: from the start of the warm-up, or this long after the start of the measured time.
enum Fault {
    None,
    /// Operations per second of the disk from then on.
    Throttle(Option<Duration>, u64),
    /// CPUs that the server may use.
    Quota(f64),
    /// Processes that compute on a CPU.
    Neighbours(usize, usize),
    /// Connections opened and closed each second.
    Connections(u32),
}

struct Scenario {
    name: &'static str,
    /// True causes; empty for a run without a fault.
    expected: &'static [&'static str],
    arguments: &'static [&'static str],
    on_disk: bool,
    fault: Fault,
}

impl Scenario {
    fn folder(&self) -> String {
        self.name.replace([' ', '/'], "-")
    }
}

/// Server on which the scenarios run.
pub(crate) enum Subject {
    Embedded,
    Mongod(PathBuf),
}

impl Subject {
    /// Arguments of `dyno` for a scenario. A `mongod` accepts no cache below 256 MiB, so it gets more documents where they must not
    /// fit.
    fn arguments(&self, scenario: &Scenario) -> Vec<String> {
        let own = |arguments: &[&str]| -> Vec<String> {
            arguments.iter().map(|word| (*word).to_owned()).collect()
        };
        let mut arguments = own(scenario.arguments);
        if scenario.on_disk {
            let durable = ["--set", "server.durable_writes=true"];
            arguments.extend(own(&durable));
            arguments.extend(own(&["--records", "20000"]));
        }
        let Subject::Mongod(program) = self else {
            arguments.extend(own(&["--server", "embedded"]));
            return arguments;
        };
        for argument in &mut arguments {
            match argument.as_str() {
                "32MiB" | "64MiB" => "256MiB".clone_into(argument),
                "200000" => "600000".clone_into(argument),
                _ => {}
            }
        }
        if !scenario.arguments.contains(&"--cache") {
            arguments.extend(own(&["--cache", "256MiB"]));
        }
        arguments.push("--mongod".to_owned());
        arguments.push(program.display().to_string());
        arguments
    }

    /// True causes of a scenario. One flush of a `mongod` serves all waiting writes, so on a fast disk they exhaust the CPUs before
    /// they wait for the disk.
    fn expected(&self, scenario: &Scenario) -> Vec<&'static str> {
        let shared: &[_] = match (self, scenario.expected) {
            (Subject::Mongod(_), ["slow_sync"]) => &["shared_cpu"],
            _ => &[],
        };
        [scenario.expected, shared].concat()
    }

    /// Prefix of its process name.
    fn process(&self) -> &'static str {
        match self {
            Subject::Embedded => "secantus",
            Subject::Mongod(_) => "mongod",
        }
    }
}

/// Runs all scenarios, or those with `filter` in their name, and prints the table. `keep` is a folder for the recorded runs.
pub(crate) fn all(dyno: &Path, subject: &Subject, filter: &str, keep: Option<&Path>) -> Result<()> {
    if !is_root() {
        bail!("only root can provoke faults");
    }
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    println!("| Run | True | Found first | Others found | |\n|---|---|---|---|---|");
    let (mut right, mut missed, mut wrong, mut false_alarms, mut clean) = (0, 0, 0, 0, 0);
    for scenario in scenarios().iter().filter(|one| one.name.contains(filter)) {
        let found = run(scenario, subject, dyno, folder.path())
            .with_context(|| format!("the run `{}` failed", scenario.name))?;
        let expected = subject.expected(scenario);
        if let Some(keep) = keep {
            golden::keep(&folder.path().join(scenario.folder()), keep, &expected)?;
        }
        let first = found.first().map_or("nothing", String::as_str);
        let outcome = match (expected.as_slice(), found.first()) {
            ([], None) => {
                clean += 1;
                "right"
            }
            ([], Some(_)) => {
                false_alarms += 1;
                "FALSE ALARM"
            }
            (_, None) => {
                missed += 1;
                "MISSED"
            }
            (expected, Some(first)) if expected.contains(&first.as_str()) => {
                right += 1;
                "right"
            }
            _ => {
                wrong += 1;
                "WRONG"
            }
        };
        let truth = match expected.as_slice() {
            [] => "no fault".to_owned(),
            causes => causes.join(" or "),
        };
        let others = found.iter().skip(1).cloned().collect::<Vec<_>>().join(", ");
        println!("| {} | {truth} | {first} | {others} | {outcome} |", scenario.name);
    }
    println!(
        "\n| | the fault was named | another cause was named | nothing was found |\n|---|---|---|---|"
    );
    println!("| runs with a fault | {right} | {wrong} | {missed} |");
    println!("| runs without | – | {false_alarms} | {clean} |");
    Ok(())
}

#[rustfmt::skip]
fn scenarios() -> Vec<Scenario> {
    let half = Some(Duration::from_secs(20));
    let fault = |name, expected, arguments, on_disk, fault| Scenario { name, expected, arguments, on_disk, fault };
    let clean = |name, arguments, on_disk| Scenario { name, expected: &[], arguments, on_disk, fault: Fault::None };
    vec![
        fault("burst credits", &["burst_credits"], &["a", "--rate", "150", "--duration", "50s"], true, Fault::Throttle(half, 30)),
        fault("disk operations", &["disk_operations"], &["a", "--duration", "20s"], true, Fault::Throttle(None, 60)),
        fault("sync on commit", &["slow_sync"], &["a", "--duration", "20s"], true, Fault::None),
        fault("cpu quota", &["cpu_throttled"], &["c", "--records", "20000", "--duration", "20s"], false, Fault::Quota(0.4)),
        fault("small cache", &["cache_too_small"], &["c", "--records", "200000", "--cache", "32MiB", "--rate", "2000", "--duration", "20s", "-p", "requestdistribution=uniform"], false, Fault::None),
        fault("neighbour", &["noisy_neighbour"], &["c", "--records", "20000", "--clients", "4", "--duration", "20s", "--placement", "cores=1 client=0"], false, Fault::Neighbours(1, 2)),
        fault("client", &["client"], &["c", "--records", "20000", "--threads", "1", "--duration", "20s", "--placement", "cores=1 client=0"], false, Fault::Neighbours(0, 6)),
        fault("one client", &["too_few_clients", "round_trip"], &["c", "--records", "20000", "--clients", "1", "--duration", "20s"], false, Fault::None),
        fault("all CPUs", &["shared_cpu", "server_cpu"], &["c", "--records", "20000", "--clients", "32", "--duration", "20s"], false, Fault::None),
        fault("connections", &["connection_storm"], &["c", "--records", "20000", "--rate", "500", "--duration", "20s"], false, Fault::Connections(100)),
        clean("a at 500/s", &["a", "--records", "20000", "--rate", "500", "--duration", "20s"], false),
        clean("b at 1000/s", &["b", "--records", "20000", "--rate", "1000", "--duration", "20s"], false),
        clean("c at 2000/s", &["c", "--records", "20000", "--rate", "2000", "--duration", "20s"], false),
        clean("d at 500/s", &["d", "--records", "20000", "--rate", "500", "--duration", "20s"], false),
        clean("e at 5/s", &["e", "--records", "20000", "--rate", "5", "--duration", "20s"], false),
        clean("f at 500/s", &["f", "--records", "20000", "--rate", "500", "--duration", "20s"], false),
        clean("durable a at 100/s", &["a", "--rate", "100", "--duration", "50s"], true),
        clean("durable a at 40/s", &["a", "--rate", "40", "--duration", "20s"], true),
        clean("c that fits", &["c", "--records", "5000", "--cache", "64MiB", "--rate", "2000", "--duration", "20s"], false),
        clean("write at 200/s", &["write", "--records", "20000", "--rate", "200", "--duration", "20s"], false),
    ]
}

/// Causes that `dyno` found, in its order.
fn run(scenario: &Scenario, subject: &Subject, dyno: &Path, folder: &Path) -> Result<Vec<String>> {
    let disk = if scenario.on_disk {
        Some(LoopDisk::new(folder, DISK_MIB, FileSystem::Ext4)?)
    } else {
        None
    };
    let out = folder.join(scenario.folder());
    let mut command = Command::new(dyno);
    command
        .arg("run")
        .args(subject.arguments(scenario))
        .args(["--warmup", "3s", "--quiet", "--format", "json", "--out"])
        .arg(&out)
        .env("DYNO_STATE_DIR", folder.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if let Some(disk) = &disk {
        command.arg("--data-dir").arg(disk.path().join("data"));
    }
    let mut child = command.spawn().context("cannot start `dyno`")?;
    let mut stdout = child.stdout.take().context("its output is not a pipe")?;
    // Read in the background: a full pipe would block it.
    let output: JoinHandle<std::io::Result<String>> = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let held = provoke(scenario, subject, &mut child, &out, disk.as_ref());
    let status = wait(&mut child)?;
    drop(held?);
    let text = output.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
    if !status {
        bail!("`dyno` failed");
    }
    let document: Value = serde_json::from_str(&text).context("its output is not JSON")?;
    let causes = document["analysis"]["verdict"]["causes"].as_array();
    let causes = causes.context("the run has no verdict")?;
    let names = causes.iter().filter_map(|cause| cause["cause"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Keeps a fault active until dropped.
#[expect(dead_code, reason = "held for their drop")]
enum Held {
    Nothing,
    Throttle(DiskThrottle),
    Quota(CpuQuota),
    Neighbours(Vec<Neighbour>),
    Connections(Storm),
}

fn provoke(
    scenario: &Scenario,
    subject: &Subject,
    child: &mut Child,
    out: &Path,
    disk: Option<&LoopDisk>,
) -> Result<Held> {
    await_phase(child, out, "warmup")?;
    Ok(match scenario.fault {
        Fault::None => Held::Nothing,
        Fault::Throttle(after, per_s) => {
            if let Some(after) = after {
                await_phase(child, out, "measure")?;
                std::thread::sleep(after);
            }
            let disk = disk.context("a throttle needs a disk")?;
            Held::Throttle(DiskThrottle::new(disk.device(), per_s)?)
        }
        Fault::Quota(cpus) => {
            Held::Quota(CpuQuota::new(&[server_of(child.id(), subject.process())?], cpus)?)
        }
        Fault::Neighbours(cpu, count) => {
            let neighbours: Result<Vec<_>, _> =
                (0..count).map(|_| Neighbour::on_cpu(cpu)).collect();
            Held::Neighbours(neighbours?)
        }
        Fault::Connections(per_s) => Held::Connections(Storm::start(out, per_s)?),
    })
}

/// Waits until the run reports the start of this phase or a later one.
fn await_phase(child: &mut Child, out: &Path, phase: &str) -> Result<()> {
    let order = ["load", "warmup", "measure"];
    let place = |name: &str| order.iter().position(|known| *known == name);
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(out.join("live.json")).unwrap_or_default();
        let live: Value = serde_json::from_str(&text).unwrap_or_default();
        if live["phase"].as_str().and_then(place) >= place(phase) {
            return Ok(());
        }
        if child.try_wait()?.is_some() || started.elapsed() > RUN_LIMIT {
            bail!("the run never reached the phase `{phase}`");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait(child: &mut Child) -> Result<bool> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if started.elapsed() > RUN_LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("the run did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The server started by this `dyno`: the child of `dyno` or of its watchdog with this name prefix.
fn server_of(dyno: u32, name: &str) -> Result<u32> {
    let name = format!("({name}");
    let mut parents = vec![dyno];
    let mut found = None;
    for _ in 0..4 {
        let mut children = Vec::new();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Some(process) =
                entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let Some((before, after)) = stat.rsplit_once(')') else {
                continue;
            };
            let parent = after.split_whitespace().nth(1).and_then(|text| text.parse().ok());
            if parent.is_some_and(|parent: u32| parents.contains(&parent)) {
                children.push(process);
                if before.contains(&name) {
                    found = Some(process);
                }
            }
        }
        parents = children;
    }
    found.context("cannot find the server of the run")
}

/// Opens and closes connections until dropped.
struct Storm {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Storm {
    fn start(out: &Path, per_s: u32) -> Result<Storm> {
        let address = server_address(out)?;
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
                std::thread::sleep(Duration::from_secs(1) / per_s);
            }
        });
        Ok(Storm { ended, thread: Some(thread) })
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads the address from the run's document, where it is written before the load begins.
fn server_address(out: &Path) -> Result<SocketAddr> {
    let text = std::fs::read_to_string(out.join("run.json"))?;
    let document: Value = serde_json::from_str(&text)?;
    let address =
        document["server"]["address"].as_str().context("the document does not name a server")?;
    address.parse().with_context(|| format!("`{address}` is not a valid address"))
}

/// The program under test: the release build of this project.
pub(crate) fn program() -> PathBuf {
    dyno_testkit::project_dir().join("target/release/dyno")
}
