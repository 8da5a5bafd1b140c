//! Kernel and device settings for the time of a run, and the packet steering of a network card. They
//! are made before a server opens its files, disk settings once the data disk exists, and restored at
//! the end of the run, however it ends. The journal of `dyno doctor` keeps the earlier values, so that
//! `dyno doctor --revert` can restore them if this program was killed.

use crate::context::Context;
use crate::error::{Error, Kind, refuse};
use crate::observer::SharedObserver;
use crate::undo::changes::Changes;
use crate::undo::journal;
use crate::undo::step::{Step, Ways};
use dyno_observe::doctor::change;
use dyno_observe::health::Reading;
use dyno_observe::host_setting::{self, SettingFiles};
use dyno_observe::steering;
use dyno_plan::Plan;
use dyno_plan::host_setting::{HostSetting, Place};
use dyno_plan::model::ServerKind;
use dyno_record::model::{Caveat, CaveatKind, HostSettingRecord};
use dyno_record::statement;
use dyno_record::verdict::Action;
use dyno_servers::own_addresses;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Settings that were made. Dropping this restores the earlier values.
pub struct HostSettings<'a> {
    changes: Changes<'a>,
    /// Name of the setting of each change.
    names: Vec<&'static str>,
}

/// A setting and its value.
type Wanted<'p> = (HostSetting, &'p str);

/// The write of a value to a file, with the name of the setting.
type Write = (&'static str, Action);

impl<'a> HostSettings<'a> {
    /// Makes the plan's settings that do not belong to a disk, and steers packets; `None` without
    /// any, and in a fleet, whose agents call [`of_card`](Self::of_card).
    ///
    /// # Errors
    /// This machine does not support a setting or value, or the kernel refuses it. Settings made
    /// until then are restored.
    pub(crate) fn of_kernel(plan: &Plan, context: Context<'a>) -> Result<Option<Self>, Error> {
        if context.source.is_some() {
            return Ok(None);
        }
        let root = Path::new("/");
        let found = writes(&wanted(plan, false), &[], root).and_then(|mut all| {
            all.extend(steering_of(plan, root)?);
            Ok(all)
        });
        HostSettings::set(found, context.environment.state_dir.as_deref(), context.observer)
    }

    /// Steers the packets of a network card as planned, and makes no other setting; `None` if the
    /// plan has no card. The journal is in `state_dir`.
    ///
    /// # Errors
    /// The card does not exist, or the kernel refuses the change.
    pub fn of_card(
        plan: &Plan,
        state_dir: Option<&Path>,
        observer: &'a dyn SharedObserver,
    ) -> Result<Option<Self>, Error> {
        HostSettings::set(steering_of(plan, Path::new("/")), state_dir, observer)
    }

    /// Makes the settings of the disks with these folders; `None` without any.
    ///
    /// # Errors
    /// See [`of_kernel`](Self::of_kernel).
    pub(crate) fn of_disk(
        plan: &Plan,
        folders: &[PathBuf],
        context: Context<'a>,
    ) -> Result<Option<Self>, Error> {
        let found = writes(&wanted(plan, true), folders, Path::new("/"));
        HostSettings::set(found, context.environment.state_dir.as_deref(), context.observer)
    }

    fn set(
        writes: Result<Vec<Write>, Error>,
        state_dir: Option<&Path>,
        observer: &'a dyn SharedObserver,
    ) -> Result<Option<Self>, Error> {
        if writes.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(None);
        }
        let folder = journal::folder(state_dir)?;
        HostSettings::set_in(Path::new("/"), writes, folder, observer).map(Some)
    }

    fn set_in(
        root: &Path,
        writes: Result<Vec<Write>, Error>,
        folder: &Path,
        observer: &'a dyn SharedObserver,
    ) -> Result<Self, Error> {
        let made = writes.and_then(|writes| {
            let (names, actions): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
            let ways = Ways::new(root, None);
            let changes = Changes::make(Some(folder), ways, observer, || {
                let own = change::read(None, &actions, root)
                    .map_err(|error| Error::from_cause(Kind::Environment, error))?;
                Ok(own.into_iter().map(Step::Kernel).collect())
            })?;
            Ok(HostSettings { changes, names })
        });
        made.map_err(|failure| intent(failure.with_hint(NEEDS)))
    }

    /// Current values, and caveats for values that have changed.
    pub fn look(&self) -> (Vec<HostSettingRecord>, Vec<Caveat>) {
        let mut caveats = Vec::new();
        let mut records = self.record();
        for (record, now) in records.iter_mut().zip(self.changes.now()) {
            record.at_end = now;
            let statement = match &record.at_end {
                Some(found) if *found == record.set => continue,
                Some(found) => statement!(
                    "host-setting-changed",
                    file = &record.file,
                    set_to = &record.set,
                    found = found
                ),
                None => statement!("host-setting-not-read", file = &record.file),
            };
            caveats.push(Caveat::of_run(CaveatKind::MachineSetting, statement));
        }
        (records, caveats)
    }

    /// Record of the settings.
    pub fn record(&self) -> Vec<HostSettingRecord> {
        let record = |(name, step): (&&str, &Step)| HostSettingRecord {
            name: (*name).to_owned(),
            file: step.target(),
            before: step.before(),
            set: step.value(),
            at_end: None,
        };
        self.names.iter().zip(&self.changes.steps).map(record).collect()
    }
}

const NEEDS: &str =
    "run it as root with a writable `/proc/sys` and `/sys`, which many containers lack";

/// Intent of a setting that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the machine settings of the plan")]
struct NotMade;

fn intent(failure: Error) -> Error {
    Error { cause: failure.cause.context(NotMade), ..failure }
}

/// Whether a failure means that machine settings could not be made.
pub(crate) fn are_not_made(failure: &Error) -> bool {
    failure.cause.is::<NotMade>()
}

/// The plan's settings, of disks or of everything else.
fn wanted(plan: &Plan, of_disk: bool) -> Vec<Wanted<'_>> {
    let known = plan
        .server
        .host_settings
        .iter()
        .filter_map(|(name, value)| Some((HostSetting::from_name(name)?, value.as_str())));
    known.filter(|(setting, _)| is_of_disk(*setting) == of_disk).collect()
}

/// Whether a setting belongs to the data disk, so that its location is known only when the disk is.
pub(crate) fn is_of_disk(setting: HostSetting) -> bool {
    matches!(setting.place(), Place::DataDisk(_))
}

/// Files of a setting on this machine; of a disk setting, on all disks with one of these folders.
pub(crate) fn find(
    setting: HostSetting,
    folders: &[PathBuf],
    root: &Path,
) -> Reading<SettingFiles> {
    match setting.place() {
        Place::Machine(file) => host_setting::of_machine(file, root),
        Place::EachCpu(file) => host_setting::of_cpus(file, root),
        Place::DataDisk(file) => {
            let of_folder = |folder: &PathBuf| host_setting::of_disk(file, folder, root);
            let mut disks = folders.iter().map(of_folder);
            let first =
                disks.next().unwrap_or_else(|| host_setting::of_disk(file, Path::new("."), root));
            disks.try_fold(first?, |mut all, disk| {
                let new = disk?
                    .files
                    .into_iter()
                    .filter(|file| !all.files.contains(file))
                    .collect::<Vec<_>>();
                all.files.extend(new);
                Ok(all)
            })
        }
    }
}

/// The file with a number that this machine uses instead of a setting, and that the setting would
/// overwrite.
pub(crate) fn counts_instead(setting: HostSetting, root: &Path) -> Option<&'static str> {
    let instead = setting.instead()?;
    let number = host_setting::number(instead, root);
    number.is_ok_and(|number| number > 0).then_some(instead)
}

/// Writes that set these values.
fn writes(wanted: &[Wanted<'_>], folders: &[PathBuf], root: &Path) -> Result<Vec<Write>, Error> {
    let mut all = Vec::new();
    for (setting, value) in wanted {
        all.extend(writes_of(*setting, value, folders, root)?);
    }
    Ok(all)
}

fn writes_of(
    setting: HostSetting,
    value: &str,
    folders: &[PathBuf],
    root: &Path,
) -> Result<Vec<Write>, Error> {
    let name = setting.as_str();
    let found = find(setting, folders, root).map_err(|health| {
        let reason = health.reason();
        let text = format!("this machine does not have the setting `{name}`: {reason}");
        Error::new(Kind::Environment, text)
            .with_hint(format!("leave out `server.host_settings.{name}`"))
    })?;
    let written = setting.written(value).filter(|value| {
        let choices = found.choices.as_ref();
        choices.is_none_or(|choices| choices.contains(value))
    });
    let Some(written) = written else {
        let has = match &found.choices {
            Some(choices) => format!("this machine supports `{}`", choices.join("`, `")),
            None => format!("it must be {}", setting.values()),
        };
        let text = format!("`server.host_settings.{name}` is `{value}`, but {has}");
        return Err(Error::new(Kind::BadInput, text));
    };
    if let Some(instead) = counts_instead(setting, root) {
        let text = format!(
            "`{instead}` is set on this machine, and `server.host_settings.{name}` would overwrite it"
        );
        return Err(Error::new(Kind::Environment, text).with_hint(format!(
            "leave out `server.host_settings.{name}`, or set the share instead of the size"
        )));
    }
    let write = |path: PathBuf| (name, Action::Write { path, value: written.clone() });
    Ok(found.files.into_iter().map(write).collect())
}

/// Writes that steer packets as planned; none if the plan has no card.
fn steering_of(plan: &Plan, root: &Path) -> Result<Vec<Write>, Error> {
    let card = steered_card(plan)?;
    card.map_or(Ok(Vec::new()), |card| steering(&card, root))
}

/// Writes that steer the packets of a card, such as `eth0` or `eth0=0-3`.
fn steering(card: &str, root: &Path) -> Result<Vec<Write>, Error> {
    let actions = steering::find(card, root).map_err(|error| {
        let hint = error.hint();
        Error::from_cause(Kind::Environment, error)
            .with_optional_hint(hint)
            .context(format!("cannot steer packets as in `{card}`"))
    })?;
    Ok(actions.into_iter().map(|action| ("receive_packet_steering", action)).collect())
}

/// The plan's packet steering, with the card of its listen address instead of `auto`.
fn steered_card(plan: &Plan) -> Result<Option<String>, Error> {
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
        return refuse(text, "name the card, such as `--receive-packet-steering eth0`");
    }
    let address = plan.server.listen_address();
    let own = interface_of(address).ok_or_else(|| {
        let text = format!(
            "no network card of this machine has the listen address `{address}` of the servers"
        );
        Error::new(Kind::BadInput, text)
            .with_hint("name the card, such as `--receive-packet-steering eth0`")
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

/// Preflight check of the settings before the servers run: unsupported settings and values, and
/// missing rights.
///
/// # Errors
/// See above.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    let steering = steering_of(plan, Path::new("/"))?;
    let named = named_folders(plan);
    // Otherwise the data folder is known only once the run has a folder or its storage.
    let of_disk = wanted(plan, true).into_iter().filter(|_| !named.is_empty());
    let all: Vec<_> = wanted(plan, false).into_iter().chain(of_disk).collect();
    let settings = writes(&all, &named, Path::new("/"))?;
    for (_, action) in settings.into_iter().chain(steering) {
        if let Action::Write { path, .. } = action {
            may_write(&path)?;
        }
    }
    Ok(())
}

/// Refuses settings that this process may not change, whatever their values, if their location is
/// known.
///
/// # Errors
/// Usually that this is not root.
pub(crate) fn check_rights(
    settings: impl Iterator<Item = HostSetting>,
    plan: &Plan,
) -> Result<(), Error> {
    let folders = named_folders(plan);
    let known = settings.filter(|setting| !is_of_disk(*setting) || !folders.is_empty());
    // Missing settings are left out later.
    let found = known.filter_map(|setting| find(setting, &folders, Path::new("/")).ok());
    let mut files = found.flat_map(|found| found.files);
    files.try_for_each(|file| may_write(&file))
}

/// Data folders that a plan names.
pub(crate) fn named_folders(plan: &Plan) -> Vec<PathBuf> {
    let server = &plan.server;
    server.data_dir.iter().chain(&server.data_dirs).map(PathBuf::from).collect()
}

fn may_write(path: &Path) -> Result<(), Error> {
    host_setting::may_set(path, Path::new("/")).map_err(|error| {
        let text = format!("cannot write `{}`", path.display());
        intent(Error::from_cause(Kind::Environment, error).context(text)).with_hint(NEEDS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Unobserved;
    use crate::undo::journal::Journal;
    use dyno_observe::doctor::change::Undo;
    use dyno_observe::steering::SteeringError;
    use std::fs;
    use tempfile::TempDir;

    const SWAPPINESS: &str = "proc/sys/vm/swappiness";
    const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

    const QUEUE: &str = "sys/class/net/eth0/queues/rx-0/rps_cpus";
    const OTHER: &str = "sys/class/net/eth0/queues/rx-1/rps_cpus";

    /// A machine with settings, four CPUs and a card with two queues, and a folder for the journal.
    struct Bench {
        folder: TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let bench = Bench { folder: TempDir::new().unwrap() };
            bench.write("proc/sys/kernel/random/boot_id", "one\n");
            bench.write(SWAPPINESS, "60\n");
            bench.write(HUGE_PAGES, "always [madvise] never\n");
            bench.write("proc/sys/vm/dirty_ratio", "20\n");
            bench.write("proc/sys/vm/dirty_bytes", "0\n");
            bench.write("sys/devices/system/cpu/online", "0-3\n");
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

        fn set(&self, wanted: &[Wanted<'_>]) -> Result<HostSettings<'static>, Error> {
            let writes = writes(wanted, &[], &self.root());
            HostSettings::set_in(&self.root(), writes, &self.state(), &Unobserved)
        }

        fn steer(&self, card: &str) -> Result<HostSettings<'static>, Error> {
            let writes = steering(card, &self.root());
            HostSettings::set_in(&self.root(), writes, &self.state(), &Unobserved)
        }

        fn journal_is_empty(&self) -> bool {
            !self.state().join("doctor-undo.json").exists()
        }
    }

    #[test]
    fn settings_are_made_for_the_run_and_restored_after_it() {
        let bench = Bench::new();
        let settings =
            bench.set(&[(HostSetting::Swappiness, "1"), (HostSetting::DirtyRatio, "20")]).unwrap();
        assert_eq!(bench.read(SWAPPINESS), "1");
        assert!(!bench.journal_is_empty());
        let (records, caveats) = settings.look();
        let found: Vec<_> = records
            .iter()
            .map(|one| (one.name.as_str(), one.before.as_str(), one.at_end.as_deref()))
            .collect();
        let expected = [("swappiness", "60", Some("1")), ("dirty_ratio", "20", Some("20"))];
        assert_eq!(found, expected);
        assert!(caveats.is_empty());
        bench.write(SWAPPINESS, "7\n");
        let (_, caveats) = settings.look();
        assert_eq!(caveats[0].statement.code, "host-setting-changed");
        bench.write(SWAPPINESS, "1\n");
        drop(settings);
        assert_eq!(bench.read(SWAPPINESS), "60");
        assert!(bench.journal_is_empty());
    }

    #[test]
    fn settings_are_refused_after_a_crash_until_doctor_reverts() {
        let bench = Bench::new();
        std::mem::forget(bench.set(&[(HostSetting::Swappiness, "1")]).unwrap());
        let again = bench.set(&[(HostSetting::Swappiness, "10")]);
        let failure = again.map(drop).unwrap_err();
        assert!(failure.reason().contains("swappiness`"), "{failure:?}");
        // Also below the intent of that moment.
        let failure = failure.context("the run failed");
        assert!(are_not_made(&failure));
        assert!(failure.hint.unwrap().contains("dyno doctor --revert"));
        assert_eq!(bench.read(SWAPPINESS), "1");
        let mut journal = Journal::open(&bench.state(), &bench.root()).unwrap();
        let outcome = journal.revert(&Unobserved).unwrap();
        assert_eq!((outcome.reverted.len(), outcome.refused), (1, 0));
        drop(journal);
        assert_eq!(bench.read(SWAPPINESS), "60");
        drop(bench.set(&[(HostSetting::Swappiness, "10")]).unwrap());
        assert_eq!(bench.read(SWAPPINESS), "60");
    }

    #[test]
    fn setting_missing_on_the_machine_is_refused_without_changes() {
        let bench = Bench::new();
        let refused = |setting, value: &str, kind: Kind, names: &str| {
            let wanted = [(HostSetting::Swappiness, "1"), (setting, value)];
            let failure = bench.set(&wanted).map(drop).unwrap_err();
            assert_eq!(failure.kind, kind, "{failure:?}");
            assert!(failure.reason().contains(names), "{failure:?}");
            assert!(are_not_made(&failure), "{failure:?}");
            assert_eq!(bench.read(SWAPPINESS), "60");
            assert!(bench.journal_is_empty());
        };
        refused(HostSetting::ZoneReclaim, "1", Kind::Environment, "setting `zone_reclaim`");
        bench.write(HUGE_PAGES, "[madvise] never\n");
        refused(HostSetting::HugePages, "always", Kind::BadInput, "`madvise`, `never`");
        bench.write("proc/sys/vm/dirty_bytes", "4096\n");
        refused(HostSetting::DirtyRatio, "5", Kind::Environment, "dirty_bytes`");
        // A folder instead of a file: it can be neither read nor written.
        fs::remove_file(bench.root().join(HUGE_PAGES)).unwrap();
        fs::create_dir(bench.root().join(HUGE_PAGES)).unwrap();
        refused(HostSetting::HugePages, "never", Kind::Environment, "setting `huge_pages`");
    }

    #[test]
    fn queues_are_set_for_the_run_and_restored_after_it() {
        let bench = Bench::new();
        let settings = bench.steer("eth0").unwrap();
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("f".into(), "f".into()));
        assert!(!bench.journal_is_empty());
        let (records, caveats) = settings.look();
        assert_eq!(records[0].name, "receive_packet_steering");
        assert!(records[0].file.contains("/eth0/"), "{records:?}");
        assert_eq!(records[0].before, "0");
        assert_eq!(records[1].before, "1");
        assert_eq!(records[0].at_end.as_deref(), Some("f"));
        assert!(caveats.is_empty());
        drop(settings);
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("0".into(), "1".into()));
        assert!(bench.journal_is_empty());
    }

    #[test]
    fn dropped_steering_restores_the_queues() {
        let bench = Bench::new();
        drop(bench.steer("eth0=2").unwrap());
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("0".into(), "1".into()));
        assert!(bench.journal_is_empty());
    }

    #[test]
    fn doctor_restores_the_queues_after_a_crash() {
        let bench = Bench::new();
        std::mem::forget(bench.steer("eth0=1,3").unwrap());
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
        let settings = bench.steer("eth0=0").unwrap();
        let needed = settings.changes.steps.iter().filter(|step| step.is_needed());
        assert_eq!(needed.count(), 1);
        bench.write(OTHER, "3\n");
        let (records, caveats) = settings.look();
        assert_eq!(records[1].at_end.as_deref(), Some("3"));
        let [caveat] = caveats.as_slice() else { panic!("{caveats:?}") };
        let file = caveat.statement.text("file");
        assert!(file.is_some_and(|file| file.contains("rx-1/rps_cpus")));
        drop(settings);
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("0".into(), "3".into()));
    }

    #[test]
    fn values_changed_by_others_are_left_unchanged() {
        let bench = Bench::new();
        let settings = bench.steer("eth0").unwrap();
        bench.write(QUEUE, "8\n");
        drop(settings);
        assert_eq!((bench.read(QUEUE), bench.read(OTHER)), ("8".into(), "1".into()));
        assert!(!bench.journal_is_empty(), "the entry is kept for a decision");
    }

    #[test]
    fn changes_of_the_doctor_during_a_run_stay_in_the_journal() {
        let bench = Bench::new();
        let settings = bench.steer("eth0").unwrap();
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
        drop(settings);
        assert_eq!(bench.read(swappiness), "1");
        let mut journal = Journal::open(&bench.state(), &bench.root()).unwrap();
        let outcome = journal.revert(&Unobserved).unwrap();
        assert_eq!(outcome.reverted.len(), 1);
        assert_eq!(bench.read(swappiness), "60");
    }

    #[test]
    fn no_queue_is_set_when_one_cannot_be() {
        let bench = Bench::new();
        let mut actions = steering::find("eth0", &bench.root()).unwrap();
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
            let failure = steering(text, &bench.root()).unwrap_err();
            assert_eq!(failure.kind, Kind::Environment);
            let found = failure.cause.downcast::<SteeringError>();
            found.expect("it is the cause")
        };
        assert!(matches!(
            refused("eth1"),
            SteeringError::NoInterface { interface, .. } if interface == "eth1"
        ));
        assert!(matches!(refused("eth0=9"), SteeringError::Offline { cpu: 9 }));
        let failure = bench.steer("eth1").map(drop).unwrap_err();
        assert!(are_not_made(&failure) && failure.hint.is_some());
        assert_eq!(bench.read(QUEUE), "0");
        assert!(bench.journal_is_empty());
    }
}
