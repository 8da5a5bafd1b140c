//! Receive packet steering for the time of a run: set before anything is started, and restored at
//! its end, however it ends. The journal of `dyno doctor` keeps the earlier values, so that `dyno
//! doctor --revert` can restore them if this program was killed.

use crate::doctor::changes::Changes;
use crate::doctor::journal;
use crate::doctor::step::{Step, Ways};
use crate::error::{Error, Kind};
use crate::observer::SharedObserver;
use dyno_observe::doctor::change;
use dyno_observe::steering::{self, SteeringError};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_record::model::{Caveat, CaveatKind, SteeredQueue, SteeringRecord};
use dyno_record::statement;
use dyno_servers::own_addresses;
use std::net::IpAddr;
use std::path::Path;

/// A network card with changed packet steering. Dropping this restores it.
pub struct Steering<'a> {
    pub record: SteeringRecord,
    queues: Changes<'a>,
}

impl<'a> Steering<'a> {
    /// Sets the plan's packet steering on this machine; `None` if it has none. The journal of
    /// `state_dir` keeps the earlier values.
    ///
    /// # Errors
    /// The card does not exist, or the kernel refuses the change.
    pub fn set(
        plan: &Plan,
        state_dir: Option<&Path>,
        observer: &'a dyn SharedObserver,
    ) -> Result<Option<Self>, Error> {
        let root = Path::new("/");
        asked(plan)?.map(|text| Steering::set_in(root, &text, state_dir, observer)).transpose()
    }

    /// Refuses plans that [`set`](Steering::set) would refuse, without writing anything.
    pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
        match asked(plan)? {
            Some(text) => steering::find(&text, Path::new("/"))
                .map(drop)
                .map_err(|error| failure(error, &text)),
            None => Ok(()),
        }
    }

    fn set_in(
        root: &Path,
        text: &str,
        state_dir: Option<&Path>,
        observer: &'a dyn SharedObserver,
    ) -> Result<Self, Error> {
        let found = steering::find(text, root).map_err(|error| failure(error, text))?;
        let folder = journal::folder(state_dir)?;
        let intent = || format!("cannot steer the packets of `{}`", found.interface);
        let hint = "run it as root with a writable `/sys`, which many containers lack";
        let queues = Changes::make(Some(folder), Ways::new(root, None), observer, || {
            let own = change::read_for_run(&found.actions, root);
            let own = own.map_err(|error| Error::from_cause(Kind::Environment, error))?;
            Ok(own.into_iter().map(Step::Kernel).collect())
        });
        let queues = queues.map_err(|failure| failure.with_hint(hint).context(intent()))?;
        let record = SteeringRecord {
            interface: found.interface.clone(),
            cpus: found.cpus,
            queues: queues.steps.iter().map(queue_record).collect(),
        };
        if !queues.steps.iter().any(Step::is_needed) {
            observer
                .note(&format!("the packets of `{}` already went to these CPUs", found.interface));
        }
        Ok(Steering { record, queues })
    }

    /// Current values, and a caveat if they have changed.
    pub fn look(&self) -> (SteeringRecord, Option<Caveat>) {
        let mut record = self.record.clone();
        for (queue, now) in record.queues.iter_mut().zip(self.queues.now()) {
            queue.at_end = now;
        }
        let other = record.queues.iter().find(|queue| queue.at_end.as_ref() != Some(&queue.set));
        let caveat = other.map(|queue| {
            let statement = match &queue.at_end {
                Some(found) => statement!(
                    "packets-steered-otherwise",
                    file = &queue.file,
                    set_to = &queue.set,
                    found = found
                ),
                None => statement!("packet-steering-not-read", file = &queue.file),
            };
            Caveat::of_run(CaveatKind::MachineSetting, statement)
        });
        (record, caveat)
    }
}

/// The plan's packet steering, with the card of its listen address instead of `auto`.
fn asked(plan: &Plan) -> Result<Option<String>, Error> {
    let Some(text) = &plan.server.receive_packet_steering else {
        return Ok(None);
    };
    let (interface, cpus) = match text.split_once('=') {
        Some((interface, cpus)) => (interface, Some(cpus)),
        None => (text.as_str(), None),
    };
    if interface != "auto" {
        return Ok(Some(text.clone()));
    }
    if plan.server.kind == ServerKind::Uri {
        let text = "`auto` needs a server that `dyno` starts, but this one is already running";
        return Err(
            Error::new(Kind::BadInput, text).with_hint("name the card, such as `--rps eth0`")
        );
    }
    let address = plan.server.listen_address();
    let own = interface_of(address).ok_or_else(|| {
        let text = format!(
            "no network card of this machine has the listen address `{address}` of the servers"
        );
        Error::new(Kind::BadInput, text).with_hint("name the card, such as `--rps eth0`")
    })?;
    Ok(Some(match cpus {
        Some(cpus) => format!("{own}={cpus}"),
        None => own,
    }))
}

/// The network interface that has an address.
fn interface_of(address: IpAddr) -> Option<String> {
    own_addresses()
        .ok()?
        .into_iter()
        .find_map(|(interface, own)| (own == address).then_some(interface))
}

fn queue_record(step: &Step) -> SteeredQueue {
    SteeredQueue { file: step.target(), before: step.before(), set: step.value(), at_end: None }
}

fn failure(error: SteeringError, text: &str) -> Error {
    let hint = error.hint();
    Error::from_cause(Kind::Environment, error)
        .with_optional_hint(hint)
        .context(format!("cannot steer packets as in `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::journal::Journal;
    use crate::observer::Unobserved;
    use dyno_observe::doctor::change::Undo;
    use dyno_record::verdict::Action;
    use std::fs;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const QUEUE: &str = "sys/class/net/eth0/queues/rx-0/rps_cpus";
    const OTHER: &str = "sys/class/net/eth0/queues/rx-1/rps_cpus";

    /// A machine with four CPUs and a card with two queues, and a folder for the journal.
    struct Bench {
        folder: TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let bench = Bench { folder: TempDir::new().unwrap() };
            bench.write("sys/devices/system/cpu/online", "0-3\n");
            bench.write("proc/sys/kernel/random/boot_id", "one\n");
            bench.write(QUEUE, "0\n");
            bench.write(OTHER, "1\n");
            bench
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn read(&self, path: &str) -> String {
            let text = fs::read_to_string(self.root().join(path)).unwrap();
            text.trim().to_owned()
        }

        fn root(&self) -> PathBuf {
            self.folder.path().join("machine")
        }

        fn state(&self) -> PathBuf {
            self.folder.path().join("state")
        }

        fn set(&self, text: &str) -> Result<Steering<'static>, Error> {
            Steering::set_in(&self.root(), text, Some(&self.state()), &Unobserved)
        }

        fn journal_is_empty(&self) -> bool {
            !self.state().join("doctor-undo.json").exists()
        }
    }

    #[test]
    fn queues_are_set_for_the_run_and_restored_after_it() {
        let bench = Bench::new();
        let steering = bench.set("eth0").unwrap();
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("f".into(), "f".into()));
        assert!(!bench.journal_is_empty());
        let (record, caveat) = steering.look();
        assert_eq!(record.interface, "eth0");
        assert_eq!(record.cpus, [0, 1, 2, 3]);
        assert_eq!(record.queues[0].before, "0");
        assert_eq!(record.queues[1].before, "1");
        assert_eq!(record.queues[0].at_end.as_deref(), Some("f"));
        assert_eq!(caveat, None);
        drop(steering);
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("0".into(), "1".into()));
        assert!(bench.journal_is_empty());
    }

    #[test]
    fn dropped_steering_restores_the_queues() {
        let bench = Bench::new();
        drop(bench.set("eth0=2").unwrap());
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("0".into(), "1".into()));
        assert!(bench.journal_is_empty());
    }

    #[test]
    fn doctor_restores_the_queues_after_a_crash() {
        let bench = Bench::new();
        std::mem::forget(bench.set("eth0=1,3").unwrap());
        assert_eq!(bench.read(QUEUE), "a");
        let mut journal = Journal::open(&bench.state(), &bench.root()).unwrap();
        let outcome = journal.revert(&Unobserved).unwrap();
        assert_eq!((outcome.reverted.len(), outcome.refused), (2, 0));
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("0".into(), "1".into()));
        assert!(bench.journal_is_empty());
    }

    #[test]
    fn queue_with_the_wanted_value_is_not_touched() {
        let bench = Bench::new();
        let steering = bench.set("eth0=0").unwrap();
        let needed = steering.queues.steps.iter().filter(|step| step.is_needed());
        assert_eq!(needed.count(), 1);
        bench.write(OTHER, "3\n");
        let (record, caveat) = steering.look();
        assert_eq!(record.queues[1].at_end.as_deref(), Some("3"));
        assert!(caveat.is_some_and(|caveat| {
            caveat.statement.text("file").is_some_and(|file| file.contains("rx-1/rps_cpus"))
        }));
        drop(steering);
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("0".into(), "3".into()));
    }

    #[test]
    fn values_changed_by_others_are_left_unchanged() {
        let bench = Bench::new();
        let steering = bench.set("eth0").unwrap();
        bench.write(QUEUE, "8\n");
        drop(steering);
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("8".into(), "1".into()));
        assert!(!bench.journal_is_empty(), "the entry is kept for a decision");
    }

    #[test]
    fn changes_of_the_doctor_during_a_run_stay_in_the_journal() {
        let bench = Bench::new();
        let steering = bench.set("eth0").unwrap();
        let swappiness = "proc/sys/vm/swappiness";
        bench.write(swappiness, "60\n");
        let undo = Undo {
            check: None,
            action: Action::Write { path: Path::new("/").join(swappiness), value: "1".into() },
            before: "60".into(),
        };
        let mut journal = Journal::open(&bench.state(), &bench.root()).unwrap();
        journal.perform_all(&mut [undo.into()], &Unobserved).unwrap();
        drop(journal);
        drop(steering);
        assert_eq!(bench.read(swappiness), "1");
        let mut journal = Journal::open(&bench.state(), &bench.root()).unwrap();
        let outcome = journal.revert(&Unobserved).unwrap();
        assert_eq!(outcome.reverted.len(), 1);
        assert_eq!(bench.read(swappiness), "60");
    }

    #[test]
    fn no_queue_is_set_when_one_cannot_be() {
        let bench = Bench::new();
        let mut actions = steering::find("eth0", &bench.root()).unwrap().actions;
        // A folder instead of a file: it can be neither read nor written.
        fs::remove_file(bench.root().join(OTHER)).unwrap();
        fs::create_dir(bench.root().join(OTHER)).unwrap();
        let undo = |action: Action| Step::Kernel(Undo { check: None, action, before: "0".into() });
        let mut steps: Vec<Step> = actions.drain(..).map(undo).collect();
        let mut journal = Journal::open(&bench.state(), &bench.root()).unwrap();
        assert!(journal.perform_all(&mut steps, &Unobserved).is_err());
        assert_eq!(bench.read(QUEUE), "0");
        assert!(bench.journal_is_empty());
    }

    #[test]
    fn missing_card_or_cpu_is_environment_and_changes_nothing() {
        let bench = Bench::new();
        let refused = |text: &str| {
            let failure = bench.set(text).map(drop).unwrap_err();
            assert_eq!(failure.kind, Kind::Environment);
            let found = failure.cause.downcast::<SteeringError>();
            found.expect("it is the cause")
        };
        assert!(matches!(
            refused("eth1"),
            SteeringError::NoInterface { interface, .. } if interface == "eth1"
        ));
        assert!(matches!(refused("eth0=9"), SteeringError::Offline { cpu: 9 }));
        let failure = Steering::set_in(&bench.root(), "eth0", None, &Unobserved);
        assert!(failure.map(drop).unwrap_err().hint.is_some());
        assert_eq!(bench.read(QUEUE), "0");
        assert!(bench.journal_is_empty());
    }
}
