//! The records in the folders where runs are kept: finds them, and finds the one that a shortened name means.

use crate::reports::{HOMES, RecordKind};
use dyno_analyze::experiment::comparable::SPOILING;
use dyno_engine::run::live;
use dyno_engine::{Error, Kind};
use dyno_record::Document;
use dyno_record::document::variant_name;
use dyno_record::experiment::Verb;
use dyno_record::model::{PhaseKind, RunDocument, RunStatus};
use dyno_record::plain_file;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the newest record.
const LATEST: &str = "latest";

/// Search depth below a folder.
pub(crate) const DEPTH: usize = 3;

/// Most candidates in the error for an ambiguous name.
const MOST_CANDIDATES: usize = 6;

/// The folder of the record that an argument means: a path, the document in it (shells complete to it), a part of a name
/// in [`HOMES`], a tag of a single record there, or `latest`.
///
/// # Errors
/// [`Kind::BadInput`] if it means no record, or several.
pub(crate) fn folder(given: &Path) -> Result<PathBuf, Error> {
    if given.is_file() && RecordKind::ALL.iter().any(|kind| given.ends_with(kind.document())) {
        let parent = given.parent().filter(|parent| !parent.as_os_str().is_empty());
        return Ok(parent.unwrap_or(Path::new(".")).to_owned());
    }
    if given.exists() {
        return Ok(given.to_owned());
    }
    let homes = HOMES.map(PathBuf::from);
    if given == Path::new(LATEST) {
        return latest(&homes);
    }
    let folders = folders(&homes)?;
    let names: Vec<String> = folders.iter().map(|(home, folder)| name_in(home, folder)).collect();
    // A name may also be given with its home, as shells and messages write it.
    let inside = homes.iter().find_map(|home| given.strip_prefix(home).ok());
    let text = inside.unwrap_or(given).to_string_lossy();
    let chosen = choose(&text, &names);
    if let Ok(Some(index)) = chosen {
        return Ok(folders[index].1.clone());
    }
    if let Some(folder) = tagged(&text, &homes)? {
        return Ok(folder);
    }
    chosen?;
    let text = format!("`{}` is not a folder, a part of a run's name or a tag", given.display());
    Err(Error::new(Kind::BadInput, text).with_hint("list names and tags with `dyno runs`"))
}

/// The record with a tag; `None` if no record has it.
///
/// # Errors
/// [`Kind::BadInput`] with the candidates if several have it.
fn tagged(tag: &str, homes: &[PathBuf]) -> Result<Option<PathBuf>, Error> {
    let mut found = all(homes)?;
    found.retain(|entry| entry.tags.iter().any(|one| one == tag));
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.directory.clone())),
        several => {
            let names = shown(several.iter().map(|entry| entry.short.as_str()));
            let text = format!("several runs have the tag `{tag}`: {names}");
            Err(Error::new(Kind::BadInput, text).with_hint("name one of them"))
        }
    }
}

/// The first candidates, and the number of the others.
fn shown<'a>(candidates: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = candidates.len().saturating_sub(MOST_CANDIDATES);
    let first: Vec<String> =
        candidates.take(MOST_CANDIDATES).map(|name| format!("`{name}`")).collect();
    let first = first.join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// The newest record.
///
/// # Errors
/// No record exists, or a folder cannot be read.
fn latest(homes: &[PathBuf]) -> Result<PathBuf, Error> {
    let newest = all(homes)?.into_iter().next();
    newest.map(|entry| entry.directory).ok_or_else(|| {
        let text = format!("no runs in `{}`", HOMES.join("` or `"));
        Error::new(Kind::BadInput, text)
            .with_hint("start one with `dyno run a`, or give the folder of a run")
    })
}

/// The position of the name that a text means; `None` if it is not part of any.
///
/// # Errors
/// [`Kind::BadInput`] with the candidates if it is part of several.
pub(crate) fn choose(text: &str, names: &[String]) -> Result<Option<usize>, Error> {
    let all = |is: &dyn Fn(&str) -> bool| -> Vec<usize> {
        (0..names.len()).filter(|index| is(&names[*index])).collect()
    };
    // A stricter reading that fits hides the looser ones.
    let readings: [&dyn Fn(&str) -> bool; 4] = [
        &|name| name == text,
        &|name| name.starts_with(text),
        &|name| name.contains(text),
        &|name| has_words(name, text),
    ];
    let found = readings.into_iter().map(all).find(|found| !found.is_empty());
    match found.as_deref() {
        None => Ok(None),
        Some([one]) => Ok(Some(*one)),
        Some(several) => {
            let mut candidates: Vec<&str> =
                several.iter().map(|index| names[*index].as_str()).collect();
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            let candidates = shown(candidates.into_iter());
            let text = format!("`{text}` is part of several names: {candidates}");
            Err(Error::new(Kind::BadInput, text).with_hint("give more of the name"))
        }
    }
}

/// Whether a name has all words of a text: `b-1603` is `2026-11-28T16-03-11-b`. Digits may run over separators.
fn has_words(name: &str, text: &str) -> bool {
    let digits: Vec<String> = name.split('T').map(|part| part.replace(['-', ':'], "")).collect();
    let mut words = text.split('-').filter(|word| !word.is_empty()).peekable();
    words.peek().is_some()
        && words.all(|word| {
            let number = word.replace(':', "");
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            let is_word = name.split(['-', '/']).any(|part| part.starts_with(word));
            is_word || is_number && digits.iter().any(|part| part.contains(&number))
        })
}

/// Name of a folder below its home.
fn name_in(home: &Path, folder: &Path) -> String {
    folder.strip_prefix(home).unwrap_or(folder).display().to_string()
}

/// Folders of records below these homes, each with its home; a home may be a record itself. A missing home is empty.
fn folders(homes: &[PathBuf]) -> Result<Vec<(PathBuf, PathBuf)>, Error> {
    let is_record =
        |folder: &Path| RecordKind::ALL.iter().any(|kind| folder.join(kind.document()).is_file());
    let mut found = Vec::new();
    for home in homes.iter().filter(|home| home.is_dir()) {
        if is_record(home) {
            found.push((home.parent().map_or_else(PathBuf::new, Path::to_owned), home.clone()));
            continue;
        }
        let mut inside = Vec::new();
        search(home, DEPTH, &is_record, &mut inside)?;
        found.extend(inside.into_iter().map(|folder| (home.clone(), folder)));
    }
    Ok(found)
}

/// Finds folders below a folder, without searching inside of those that it finds.
///
/// # Errors
/// A folder cannot be read.
pub(crate) fn search(
    folder: &Path,
    depth: usize,
    is_wanted: &dyn Fn(&Path) -> bool,
    found: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let unusable = |error: std::io::Error| {
        Error::from_cause(Kind::Environment, error)
            .context(format!("cannot read `{}`", folder.display()))
    };
    for entry in std::fs::read_dir(folder).map_err(unusable)? {
        let path = entry.map_err(unusable)?.path();
        if is_wanted(&path) {
            found.push(path);
        } else if depth > 1 && path.is_dir() && !path.is_symlink() {
            search(&path, depth - 1, is_wanted, found)?;
        }
    }
    Ok(())
}

/// All records below these folders, the newest first. The runs of an experiment are part of it.
///
/// # Errors
/// A folder cannot be read.
pub(crate) fn all(homes: &[PathBuf]) -> Result<Vec<Entry>, Error> {
    let folders = folders(homes)?;
    let mut found: Vec<Entry> =
        folders.iter().filter_map(|(home, folder)| Entry::read(home, folder)).collect();
    found.sort_by(|a, b| b.order().cmp(&a.order()));
    Ok(found)
}

/// A record in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Entry {
    pub(crate) directory: PathBuf,
    /// Name below the folder that was searched, which may be shortened.
    #[serde(skip)]
    pub(crate) short: String,
    pub(crate) kind: RecordKind,
    /// Kind of the experiment.
    pub(crate) verb: Option<Verb>,
    /// Number of the experiment's runs so far.
    pub(crate) runs: Option<usize>,
    /// Name of the plan.
    pub(crate) name: String,
    pub(crate) tags: Vec<String>,
    pub(crate) started_at: String,
    pub(crate) status: RunStatus,
    pub(crate) in_progress: bool,
    /// Of an experiment: the server of its first run.
    pub(crate) server: Option<Server>,
    /// Of the measure phase, or of the load phase if the run only loaded.
    pub(crate) rate_per_s: Option<f64>,
    /// The most frequent operation.
    pub(crate) operation: Option<String>,
    /// Of that operation.
    pub(crate) response_p99_us: Option<f64>,
    /// Caveats that make the figures invalid for the server.
    pub(crate) invalid: Vec<String>,
}

/// A server in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Server {
    pub(crate) kind: String,
    pub(crate) address: String,
    pub(crate) version: Option<String>,
    pub(crate) product: Option<String>,
}

impl Entry {
    /// Reads the entry of a folder; `None` if its document is not one of this program.
    fn read(home: &Path, directory: &Path) -> Option<Entry> {
        let kind = RecordKind::of(directory);
        let head = Head::read(directory, kind.document())?;
        let status = match head.complete {
            Some(true) => RunStatus::Complete,
            _ => head.status,
        };
        let phase = |kind| head.phases.iter().find(|phase| phase.name == kind);
        // A run in progress has not finished with its load.
        let load = || phase(PhaseKind::Load).filter(|_| status != RunStatus::Running);
        let phase = phase(PhaseKind::Measure).or_else(load);
        let busiest = phase
            .and_then(|phase| phase.operations.iter().max_by_key(|(_, operation)| operation.count));
        let busiest = busiest.filter(|(_, operation)| operation.count > 0);
        let runs = (kind == RecordKind::Experiment)
            .then(|| head.points.iter().filter(|point| !point.directory.is_empty()).count());
        let server = head.server.or_else(|| {
            let first = head.points.first()?;
            Head::read(&directory.join(&first.directory), RunDocument::FILE)?.server
        });
        let spoils =
            |caveat: &&CaveatHead| SPOILING.iter().any(|kind| variant_name(kind) == caveat.kind);
        let invalid = head.caveats.iter().filter(spoils);
        Some(Entry {
            directory: directory.to_owned(),
            short: name_in(home, directory),
            kind,
            verb: head.verb,
            runs,
            name: if kind == RecordKind::Trace { "trace".into() } else { head.name },
            tags: head.plan.tags,
            started_at: head.started_at,
            in_progress: status == RunStatus::Running && live::is_locked(directory),
            status,
            server,
            rate_per_s: phase.map(PhaseHead::rate_per_s),
            operation: busiest.map(|(name, _)| name.clone()),
            response_p99_us: busiest.map(|(_, operation)| operation.response_time_us.p99),
            invalid: invalid.map(|caveat| caveat.kind.clone()).collect(),
        })
    }

    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.started_at.parse().ok()
    }

    /// By time; names order records of the same moment.
    fn order(&self) -> (Option<Timestamp>, &str) {
        (self.started(), &self.short)
    }
}

/// The fields of a document that a list needs. All others are skipped, and documents of other programs lack the version.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "dyno_version")]
    _version: String,
    started_at: String,
    #[serde(default)]
    name: String,
    verb: Option<Verb>,
    #[serde(default)]
    status: RunStatus,
    /// Of a trace, which has no status.
    complete: Option<bool>,
    #[serde(default)]
    plan: PlanHead,
    server: Option<Server>,
    #[serde(default)]
    phases: Vec<PhaseHead>,
    #[serde(default)]
    points: Vec<PointHead>,
    #[serde(default)]
    caveats: Vec<CaveatHead>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlanHead {
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct PhaseHead {
    name: PhaseKind,
    duration_s: f64,
    achieved_rate_per_s: f64,
    operations: BTreeMap<String, OperationHead>,
}

#[derive(Deserialize)]
struct OperationHead {
    count: u64,
    documents: u64,
    response_time_us: TimesHead,
}

#[derive(Deserialize)]
struct TimesHead {
    p99: f64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PointHead {
    directory: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CaveatHead {
    kind: String,
}

impl Head {
    fn read(folder: &Path, document: &str) -> Option<Head> {
        let text = plain_file::read(&folder.join(document)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl PhaseHead {
    /// The rate of a load phase counts documents, as in reports.
    fn rate_per_s(&self) -> f64 {
        if self.name != PhaseKind::Load || self.duration_s <= 0.0 {
            return self.achieved_rate_per_s;
        }
        let documents: u64 = self.operations.values().map(|operation| operation.documents).sum();
        documents as f64 / self.duration_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "2026-11-28T16-03-11-b",
        "2026-11-28T16-03-50-ab",
        "2026-11-29T09-00-00-b",
        "nightly/2026-11-29T09-00-00-a",
        "base",
    ];

    fn chosen(text: &str) -> Result<Option<&'static str>, String> {
        let chosen = choose(text, &NAMES.map(str::to_owned)).map_err(|error| error.reason())?;
        Ok(chosen.map(|index| NAMES[index]))
    }

    #[test]
    fn part_of_a_name_finds_the_only_one() {
        for (text, name) in [
            ("base", "base"),
            ("ba", "base"),
            ("2026-11-29", NAMES[2]),
            ("11-28T16-03-11", NAMES[0]),
            ("ab", NAMES[1]),
            ("nightly", NAMES[3]),
            ("b-1603", NAMES[0]),
            ("b-16:03", NAMES[0]),
            ("1128-ab", NAMES[1]),
            ("b-29", NAMES[2]),
        ] {
            assert_eq!(chosen(text), Ok(Some(name)), "{text}");
        }
        for text in ["c", "b-1703", "x-1603", "2027"] {
            assert_eq!(chosen(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn ambiguous_part_lists_the_candidates() {
        let error = chosen("2026-11-28").expect_err("two names begin with it");
        assert!(error.contains(NAMES[0]) && error.contains(NAMES[1]), "{error}");
        assert!(!error.contains(NAMES[2]), "{error}");
        let many: Vec<String> = (0..9).map(|number| format!("a{number}")).collect();
        let error = choose("a", &many).expect_err("nine names").reason();
        assert!(error.contains("`a8`") && error.contains("3 more"), "{error}");
    }
}
