//! Kernel and device settings for the time of a run. They are made before a server opens its files,
//! disk settings once the data disk exists, and restored at the end of the run, however it ends.
//! The journal of `dyno doctor` keeps the earlier values, so that `dyno doctor --revert` can
//! restore them if this program was killed.

use crate::context::Context;
use crate::doctor::changes::Changes;
use crate::doctor::journal;
use crate::doctor::step::{Step, Ways};
use crate::error::{Error, Kind};
use crate::observer::SharedObserver;
use dyno_observe::doctor::change;
use dyno_observe::health::Reading;
use dyno_observe::host_setting::{self, SettingFiles};
use dyno_plan::Plan;
use dyno_plan::host_setting::{HostSetting, Place};
use dyno_record::model::{Caveat, CaveatKind, HostSettingRecord};
use dyno_record::statement;
use dyno_record::verdict::Action;
use std::fmt;
use std::path::{Path, PathBuf};

/// Settings that were made. Dropping this restores the earlier values.
pub(crate) struct HostSettings<'a> {
    changes: Changes<'a>,
    /// The setting in each file.
    settings: Vec<HostSetting>,
}

/// A setting and its value.
type Wanted<'p> = (HostSetting, &'p str);

impl<'a> HostSettings<'a> {
    /// Makes the plan's settings that do not belong to a disk; `None` without any.
    ///
    /// # Errors
    /// This machine does not support a setting or value, or the kernel refuses it. Settings made
    /// until then are restored.
    pub(crate) fn of_kernel(plan: &Plan, context: Context<'a>) -> Result<Option<Self>, Error> {
        HostSettings::set(&wanted(plan, false), &[], context)
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
        HostSettings::set(&wanted(plan, true), folders, context)
    }

    fn set(
        wanted: &[Wanted<'_>],
        folders: &[PathBuf],
        context: Context<'a>,
    ) -> Result<Option<Self>, Error> {
        if wanted.is_empty() {
            return Ok(None);
        }
        let folder = journal::folder(context.environment.state_dir.as_deref())?;
        HostSettings::set_in(Path::new("/"), wanted, folders, folder, context.observer).map(Some)
    }

    fn set_in(
        root: &Path,
        wanted: &[Wanted<'_>],
        folders: &[PathBuf],
        folder: &Path,
        observer: &'a dyn SharedObserver,
    ) -> Result<Self, Error> {
        let mut settings = Vec::new();
        let ways = Ways::new(root, None);
        let changes = Changes::make(Some(folder), ways, observer, || {
            let (steps, own) = read(wanted, folders, root)?;
            settings = own;
            Ok(steps)
        });
        let changes = changes.map_err(|failure| intent(failure.with_hint(NEEDS)))?;
        Ok(HostSettings { changes, settings })
    }

    /// Current values, and caveats for values that have changed.
    pub(crate) fn look(&self) -> (Vec<HostSettingRecord>, Vec<Caveat>) {
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
    pub(crate) fn record(&self) -> Vec<HostSettingRecord> {
        let record = |(setting, step): (&HostSetting, &Step)| HostSettingRecord {
            name: setting.as_str().to_owned(),
            file: step.target(),
            before: step.before(),
            set: step.value(),
            at_end: None,
        };
        self.settings.iter().zip(&self.changes.steps).map(record).collect()
    }
}

const NEEDS: &str =
    "run it as root with a writable `/proc/sys` and `/sys`, which many containers lack";

/// Intent of a setting that could not be made.
#[derive(Debug)]
struct NotMade;

impl fmt::Display for NotMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot make the machine settings in `server.host_settings`")
    }
}

fn intent(failure: Error) -> Error {
    Error { cause: failure.cause.context(NotMade), ..failure }
}

/// Whether a failure means that machine settings could not be made.
pub(crate) fn are_not_made(failure: &Error) -> bool {
    failure.cause.is::<NotMade>()
}

/// The files to write with their current content, and the setting of each.
fn read(
    wanted: &[Wanted<'_>],
    folders: &[PathBuf],
    root: &Path,
) -> Result<(Vec<Step>, Vec<HostSetting>), Error> {
    let (mut files, mut settings) = (Vec::new(), Vec::new());
    for (setting, value) in wanted {
        let own = change::read_for_run(&actions(*setting, value, folders, root)?, root)
            .map_err(|error| Error::from_cause(Kind::Environment, error))?;
        settings.extend(own.iter().map(|_| *setting));
        files.extend(own.into_iter().map(Step::Kernel));
    }
    Ok((files, settings))
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

/// Writes that set a value.
fn actions(
    setting: HostSetting,
    value: &str,
    folders: &[PathBuf],
    root: &Path,
) -> Result<Vec<Action>, Error> {
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
    let action = |path: PathBuf| Action::Write { path, value: written.clone() };
    Ok(found.files.into_iter().map(action).collect())
}

/// Preflight check of the settings before the servers run: unsupported settings and values, and
/// missing rights.
///
/// # Errors
/// See above.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    let named = named_folders(plan);
    // Otherwise the data folder is known only once the run has a folder or its storage.
    let of_disk = wanted(plan, true).into_iter().filter(|_| !named.is_empty());
    for (setting, value) in wanted(plan, false).into_iter().chain(of_disk) {
        for action in actions(setting, value, &named, Path::new("/"))? {
            let Action::Write { path, .. } = action else {
                continue;
            };
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
    use crate::doctor::journal::Journal;
    use crate::observer::Unobserved;
    use std::fs;
    use tempfile::TempDir;

    const SWAPPINESS: &str = "proc/sys/vm/swappiness";
    const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

    /// A machine with two settings, and a folder for the journal.
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
            HostSettings::set_in(&self.root(), wanted, &[], &self.state(), &Unobserved)
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
}
