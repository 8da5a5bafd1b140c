//! The processes of an experiment: their hosts and options.

use super::bench::Bench;
use crate::driver::Driver;
use crate::error::TailError;
use crate::host::Host;
use crate::process::Process;
use crate::{resources, schedule};
use dyno_plan::uri::with_option;
use dyno_record::tail::{InFlight, Resources, Sample, Settings};
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time to end in order after `stop`.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The other hosts.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    pub(super) producers: Option<Host>,
    pub(super) consumers: Option<Host>,
}

impl Hosts {
    pub(super) fn open(bench: &Bench<'_>, settings: &Settings) -> Result<Hosts, TailError> {
        let open = |name: &Option<String>| {
            let host = name.as_ref().map(|name| Host::open(name, bench.host_drivers));
            host.transpose()
        };
        Ok(Hosts {
            producers: open(&settings.producer_host)?,
            consumers: open(&settings.consumer_host)?,
        })
    }

    pub(super) fn of(&mut self, role: Role) -> Option<&mut Host> {
        match role {
            Role::Produce => self.producers.as_mut(),
            Role::Consume => self.consumers.as_mut(),
        }
    }
}

/// Role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Produce,
    Consume,
}

impl Role {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Role::Produce => "produce",
            Role::Consume => "consume",
        }
    }
}

pub(super) struct Member {
    pub(super) driver: Driver,
    pub(super) process: Process,
    pub(super) role: Role,
    /// Name of its files.
    pub(super) title: String,
    /// Whether it is on another host.
    pub(super) is_there: bool,
    /// Process ID on its host.
    pub(super) id: u32,
    pub(super) output: PathBuf,
    pub(super) samples: Vec<Sample>,
}

impl Member {
    /// Its resource use.
    pub(super) fn resources(&mut self) -> Resources {
        let samples = std::mem::take(&mut self.samples);
        let at_end_s = if self.is_there {
            // Only the connection runs here. Usage after the last sample is unknown.
            Some(0.0)
        } else {
            self.process.cpu_s()
        };
        Resources { cpu_s: resources::used_s(&samples, at_end_s), samples }
    }
}

fn pairs(options: &[(&str, String)]) -> Vec<OsString> {
    let words = options.iter().flat_map(|(name, value)| [format!("--{name}").into(), value.into()]);
    words.collect()
}

fn total_messages(settings: &Settings) -> u64 {
    settings.messages * settings.producers.len() as u64
}

fn common_options(settings: &Settings, messages: u64) -> Vec<OsString> {
    let clock = if settings.is_here() { "monotonic" } else { "realtime" };
    pairs(&[
        ("database", settings.database.clone()),
        ("collection", settings.collection.clone()),
        ("messages", messages.to_string()),
        ("pool", settings.pool.to_string()),
        ("clock", clock.to_owned()),
    ])
}

pub(super) fn consumer_options(settings: &Settings) -> Vec<OsString> {
    let mut options = common_options(settings, total_messages(settings));
    options.extend(pairs(&[
        ("mode", settings.mode.as_str().to_owned()),
        ("producers", settings.producers.len().to_string()),
        ("idle-s", settings.idle_s.to_string()),
        ("delay-us", settings.delay_us.to_string()),
    ]));
    options
}

pub(super) fn producer_options(
    settings: &Settings,
    hosts: &mut Hosts,
    folder: &Path,
    number: usize,
) -> Result<Vec<OsString>, TailError> {
    let in_flight = match settings.in_flight {
        InFlight::Bounded(bound) => bound.to_string(),
        InFlight::Unbounded => "unbounded".to_owned(),
    };
    let mut options = common_options(settings, settings.messages);
    options.extend(pairs(&[
        ("producer", number.to_string()),
        ("size", settings.size_bytes.to_string()),
        ("in-flight", in_flight),
        ("write-concern", settings.write_concern.clone()),
    ]));
    if settings.journal {
        options.extend(pairs(&[("journal", "true".to_owned())]));
    }
    if let Some(schedule) = settings.schedule {
        let path = schedule_path(folder, number);
        let producers = settings.producers.len() as u64;
        schedule::write(schedule, &path, number as u64, producers, settings.messages)?;
        let place = match hosts.of(Role::Produce) {
            Some(host) => {
                let name = format!("schedule-{number}");
                host.put(&path, &name)?;
                host.path(&name)
            }
            None => path.into(),
        };
        options.extend(["--schedule".into(), place]);
    }
    Ok(options)
}

pub(super) fn schedule_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("schedule-{number}"))
}

pub(super) fn start(
    bench: &Bench<'_>,
    hosts: &mut Hosts,
    folder: &Path,
    (name, role, number): (&str, Role, usize),
    mut options: Vec<OsString>,
) -> Result<Member, TailError> {
    if (bench.interrupted)() {
        return Err(TailError::Interrupted);
    }
    let title = format!("{}-{number}", role.as_str());
    let file = format!("{title}.stamps");
    let output = folder.join(&file);
    let noun = match role {
        Role::Produce => "producer",
        Role::Consume => "consumer",
    };
    let long = format!("{noun} {number} ({name})");
    let host = hosts.of(role);
    let is_there = host.is_some();
    let (driver, process) = match host {
        Some(host) => {
            let driver = host.driver(name, role.as_str())?;
            options.extend(["--output".into(), host.path(&file)]);
            let command = host.process(&title, &driver.run, role.as_str(), &options)?;
            let long = format!("{long} on `{}`", host.name());
            let process = Process::start_there(&long, command, &uri_for(bench, &driver))?;
            (driver, process)
        }
        None => {
            let driver = bench.found.named(name, role.as_str())?.clone();
            options.extend(["--output".into(), output.clone().into()]);
            let uri = uri_for(bench, &driver);
            let process = Process::start(&long, driver.command(), role.as_str(), &options, &uri)?;
            (driver, process)
        }
    };
    Ok(Member {
        driver,
        role,
        title,
        is_there,
        id: process.id(),
        process,
        output,
        samples: Vec::new(),
    })
}

/// Connection string for a driver.
fn uri_for<'a>(bench: &Bench<'a>, driver: &Driver) -> Cow<'a, str> {
    if bench.polls_heartbeats && driver.version.monitors {
        with_option(bench.uri, "serverMonitoringMode", "poll").into()
    } else {
        bench.uri.into()
    }
}
