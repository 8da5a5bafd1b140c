//! Plan files: TOML that changes parts of a built-in plan or of the defaults.
//!
//! The plan's own JSON schema defines the valid keys, so every key has a single description. All
//! problems of a file are found in one pass, each with its place.

mod check;

use crate::builtin;
use crate::model::{
    DataPlan, KeyDistribution, OWN_DATA, OperationWeights, Plan, Schedule, ScheduleKind, ServerPlan,
};
use crate::problem::{self, Problem, ProblemKind};
use crate::request::{Setting, SettingValue};
use crate::validate::validate;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The problems of a plan or suite file.
#[derive(Debug, thiserror::Error)]
#[error("`{origin}` is not a valid {kind}:{}", problem::list(problems))]
pub struct FileError {
    pub origin: String,
    /// Expected kind of file, such as `plan` or `suite`.
    pub kind: &'static str,
    /// In the order of the file; at least one.
    pub problems: Vec<Problem>,
}

/// Key for the built-in plan to start from.
const BASE: &str = "base";

/// The plan of an empty file.
pub fn default_plan() -> Plan {
    Plan {
        name: "custom".into(),
        description: String::new(),
        tags: Vec::new(),
        server: ServerPlan::default(),
        data: DataPlan::default(),
        operations: OperationWeights::default(),
        keys: KeyDistribution::ScrambledZipfian {},
        access: Default::default(),
        client: Default::default(),
        schedule: Schedule::Closed {},
        phases: Default::default(),
        observe: Default::default(),
        price: None,
        traces: Vec::new(),
        trace: None,
        index_build: None,
        tail: None,
        fleet: None,
        checks: Vec::new(),
        folder: None,
    }
}

/// Parses a plan file. `origin` names it in errors.
///
/// # Errors
/// All problems of the file: syntax, unknown keys, invalid types and values, and contradictions.
pub fn parse(text: &str, origin: &str) -> Result<Plan, FileError> {
    parse_in(None, text, origin)
}

/// Parses a plan file in a folder, whose files its templates can name.
///
/// # Errors
/// As [`parse`].
pub fn parse_in(folder: Option<&Path>, text: &str, origin: &str) -> Result<Plan, FileError> {
    let reader = Reader { text, folder };
    reader.read().map_err(|mut problems| {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        FileError { origin: origin.into(), kind: "plan", problems }
    })
}

/// Changes single keys of a plan. A typed value is TOML; invalid TOML, such as `1GiB` or
/// `embedded`, is a text without its quotes. If a key occurs twice, the last value counts. A rate
/// makes a closed loop a constant schedule. The whole plan is left to [`validate`].
///
/// # Errors
/// All problems with the keys and values; the plan is unchanged then.
pub fn set(plan: &mut Plan, settings: &[Setting]) -> Result<(), Vec<Problem>> {
    let mut lines = BTreeMap::new();
    let mut values = BTreeMap::new();
    let mut problems = Vec::new();
    let implied = implied_by_rate(plan, settings);
    for Setting { key, value } in settings.iter().chain(&implied) {
        match value {
            SettingValue::Text(text) => match setting_line(key, text) {
                Ok(line) => drop((lines.insert(key, line), values.remove(key))),
                Err(mut found) => problems.append(&mut found),
            },
            SettingValue::Typed(value) => {
                drop((lines.remove(key), values.insert(key, value)));
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let text: String = lines.into_values().collect();
    let table = Reader::new(&text).table().map_err(without_places)?;
    let checked = check::check(&schema(), &text, table.get_ref());
    let wrong = checked.err().unwrap_or_default().into_iter();
    let wrong: Vec<Problem> = wrong.filter(|problem| !has_it(plan, problem)).collect();
    if !wrong.is_empty() {
        return Err(without_places(wrong));
    }
    let mut changed = lay_file_over(plan, table.get_ref()).map_err(|problem| vec![problem])?;
    for (key, value) in values {
        match with_value(&changed, key, value.clone()) {
            Ok(plan) => changed = plan,
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    // As in a file, where a single one of them replaces the other.
    let is_given = |key: &str| settings.iter().any(|setting| setting.key == key);
    // A plan that ends by a count, such as a plan of properties, has no duration, and an absent
    // duration must not become the default.
    let ends_by_count = plan.phases.operations.is_some() && plan.phases.duration.is_none();
    if (is_given("phases.operations") || ends_by_count) && !is_given("phases.duration") {
        changed.phases.duration = None;
    }
    if is_given("data.records") && !is_given("data.times_cache") {
        changed.data.times_cache = None;
    }
    *plan = changed;
    Ok(())
}

/// The schedule's other keys, if the settings give its rate without its kind: the plan's keys, or a
/// constant schedule instead of a closed loop.
fn implied_by_rate(plan: &Plan, settings: &[Setting]) -> Vec<Setting> {
    let is_given = |key: &str| settings.iter().any(|setting| setting.key == key);
    if !is_given("schedule.rate_per_s") || is_given("schedule.kind") {
        return Vec::new();
    }
    let kind = match plan.schedule.kind() {
        ScheduleKind::Closed => ScheduleKind::Constant,
        kind => kind,
    };
    const DELAY: &str = "schedule.max_start_delay";
    let delay = plan.schedule.max_start_delay().filter(|_| !is_given(DELAY));
    let delay = delay.map(|delay| Setting::from_text(DELAY, delay.to_string()));
    std::iter::once(Setting::from_text("schedule.kind", kind.as_str())).chain(delay).collect()
}

/// The problem with a key that no plan has.
pub(crate) fn unknown_key(key: &str) -> Option<Problem> {
    let problems = set(&mut default_plan(), &[Setting::from_text(key, "")]).err()?;
    problems.into_iter().find(|problem| problem.kind == ProblemKind::Unknown)
}

/// The plan with a new value for a key.
fn with_value(plan: &Plan, key: &str, value: Value) -> Result<Plan, Problem> {
    let wrong = |error: serde_json::Error| Problem::new(format!("`{key}`: {error}")).about([key]);
    let mut changed = serde_json::to_value(plan).map_err(wrong)?;
    let mut place = &mut changed;
    for name in key.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
    let changed = serde_json::from_value(changed).map_err(wrong)?;
    Ok(Plan { folder: plan.folder.clone(), ..changed })
}

/// A line of TOML that is valid by itself.
fn setting_line(key: &str, value: &str) -> Result<String, Vec<Problem>> {
    let is_word = |word: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        !word.is_empty() && word.chars().all(allowed)
    };
    if !key.split('.').all(is_word) || key == BASE {
        let hint = "such as `server.cache` or `client.clients`";
        let problem = Problem::new(format!("`{key}` is not a key of a plan")).about([key]);
        return Err(vec![problem.with_hint(hint)]);
    }
    let quoted = format!("{key} = {}\n", toml::Value::String(value.into()));
    let literal = format!("{key} = {value}\n");
    let wrong = |line: &str| {
        let table = Reader::new(line).table();
        let checked = table.and_then(|table| check::check(&schema(), line, table.get_ref()));
        // Other keys of the same table may complete it; that is checked later.
        let is_missing = |problem: &Problem| problem.kind == ProblemKind::Missing;
        checked.err().filter(|problems| !problems.iter().all(is_missing))
    };
    let is_one_value = !value.contains('\n') && Reader::new(&literal).table().is_ok();
    // A text may look like another type.
    let is_text = !is_one_value || (wrong(&literal).is_some() && wrong(&quoted).is_none());
    let line = if is_text { quoted } else { literal };
    match wrong(&line) {
        None => Ok(line),
        Some(problems) => Err(without_places(problems)),
    }
}

/// Whether the plan contains the key that a table of settings lacks. The kind of a table is
/// excluded, because it decides which other keys the table has.
fn has_it(plan: &Plan, problem: &Problem) -> bool {
    let is_known = |key: &String| !key.ends_with(".kind") && value_of(plan, key).is_some();
    problem.kind == ProblemKind::Missing && problem.keys.iter().any(is_known)
}

/// The value of a key in the JSON form of a plan; `None` if the plan does not set it.
pub fn value_of(plan: &Plan, key: &str) -> Option<Value> {
    let plan = serde_json::to_value(plan.without_secrets()).ok()?;
    key.split('.').try_fold(&plan, |table, name| table.get(name)).cloned()
}

/// Typed settings have no lines.
fn without_places(mut problems: Vec<Problem>) -> Vec<Problem> {
    for problem in &mut problems {
        (problem.line, problem.column) = (None, None);
    }
    problems
}

/// Formats a resolved plan as a plan file that yields the same plan, except for
/// [secrets](Plan::without_secrets).
pub fn to_toml(plan: &Plan) -> String {
    let plan = plan.without_secrets();
    let fits = "numbers of a valid plan fit into TOML";
    if !plan.is_own() {
        return toml::to_string_pretty(&plan).expect(fits);
    }
    let mut table = toml::Table::try_from(&plan).expect(fits);
    table.remove("access");
    if let Some(toml::Value::Table(data)) = table.get_mut("data") {
        data.retain(|key, _| OWN_DATA.contains(&key));
    }
    toml::to_string_pretty(&table).expect(fits)
}

/// The plan as JSON without secrets, for the document of a run.
pub fn recorded(plan: &Plan) -> Value {
    serde_json::to_value(plan.without_secrets()).expect("a plan is plain data")
}

/// The plan in a record. Here, because code that reads plans would be compiled again in each crate that calls serde.
///
/// # Errors
/// If it is not a plan of this version.
pub fn from_recorded(value: Value) -> serde_json::Result<Plan> {
    serde_json::from_value(value)
}

/// JSON schema of plan files.
pub fn schema() -> Value {
    let mut schema =
        serde_json::to_value(schemars::schema_for!(Plan)).expect("a schema is plain data");
    schema["title"] = "mongodyno plan".into();
    schema["properties"][BASE] = serde_json::json!({
        "description": "Name of the built-in plan that this file changes. Without it the file changes the defaults.",
        "enum": builtin::names().collect::<Vec<_>>(),
    });
    if let Some(object) = schema.as_object_mut() {
        object.remove("required");
    }
    schema
}

struct Reader<'a> {
    text: &'a str,
    /// Folder of the file, if it has one.
    folder: Option<&'a Path>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Reader { text, folder: None }
    }

    /// The text parsed as TOML.
    fn table(&self) -> Result<Spanned<DeTable<'a>>, Vec<Problem>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        if errors.is_empty() {
            return Ok(table);
        }
        Err(errors.iter().map(|error| self.syntax_problem(error)).collect())
    }

    fn read(&self) -> Result<Plan, Vec<Problem>> {
        let table = self.table()?;
        let table = table.get_ref();
        let checked = check::check(&schema(), self.text, table);
        let mut problems = checked.err().unwrap_or_default();
        if problems.is_empty() {
            let mut plan = merge(table).map_err(|problem| vec![problem])?;
            plan.folder = self.folder.map(Path::to_owned);
            problems = self.problems_of(&plan, table);
            if problems.is_empty() {
                return Ok(plan);
            }
            return Err(problems);
        }
        // The valid part is checked as well, so that all problems appear at once.
        if let Some(mut plan) = merge_what_fits(table) {
            plan.folder = self.folder.map(Path::to_owned);
            for problem in self.problems_of(&plan, table) {
                let is_known = |known: &Problem| known.line.is_some() && known.line == problem.line;
                if problem.line.is_some() && !problems.iter().any(is_known) {
                    problems.push(problem);
                }
            }
        }
        Err(problems)
    }

    fn problems_of(&self, plan: &Plan, table: &DeTable<'_>) -> Vec<Problem> {
        validate(plan).into_iter().map(|problem| self.place(problem, table)).collect()
    }

    fn syntax_problem(&self, error: &toml::de::Error) -> Problem {
        let (line, column) = check::position(self.text, error.span().map_or(0, |span| span.start));
        Problem::new(error.message().trim().replace('\n', ", ")).at(line, column)
    }

    /// Locates a problem of the whole plan at the first of its keys that the file contains.
    fn place(&self, problem: Problem, table: &DeTable<'_>) -> Problem {
        let Some(offset) = problem.keys.iter().find_map(|key| offset_of(table, key)) else {
            return problem;
        };
        let (line, column) = match (problem.line, problem.column) {
            // A place in the template that is the key's value.
            (Some(line), Some(column)) => {
                let start = offset + opening_bytes(&self.text[offset..]);
                let (first_line, first_column) = check::position(self.text, start);
                let column = if line == 1 { first_column + column - 1 } else { column };
                (first_line + line - 1, column)
            }
            _ => check::position(self.text, offset),
        };
        problem.at(line, column)
    }
}

/// Offset of a dotted key's value, or of the deepest table on the way to it that the file contains.
fn offset_of(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let (first, rest) =
        key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let (name, index) = match first.strip_suffix(']').and_then(|first| first.split_once('[')) {
        Some((name, index)) => (name, index.parse::<usize>().ok()),
        None => (first, None),
    };
    let mut value = table.get(name)?;
    if let (Some(index), DeValue::Array(items)) = (index, value.get_ref()) {
        value = items.get(index).unwrap_or(value);
    }
    let here = value.span().start;
    match (rest, value.get_ref()) {
        (Some(rest), DeValue::Table(inner)) => Some(offset_of(inner, rest).unwrap_or(here)),
        _ => Some(here),
    }
}

/// Bytes before the content of a quoted text: the quotes, and a line break behind three of them.
fn opening_bytes(text: &str) -> usize {
    for quotes in ["'''", "\"\"\""] {
        if let Some(content) = text.strip_prefix(quotes) {
            let is_windows = content.starts_with("\r\n");
            let line_break = if is_windows { 2 } else { usize::from(content.starts_with('\n')) };
            return quotes.len() + line_break;
        }
    }
    usize::from(text.starts_with(['\'', '"']))
}

/// The plan that the file changes.
fn base(table: &DeTable<'_>) -> Result<Plan, Problem> {
    match table.get(BASE).and_then(|name| name.get_ref().as_str()) {
        None => Ok(default_plan()),
        Some(name) => builtin::find(name)
            .ok_or_else(|| Problem::new(format!("there is no built-in plan `{name}`"))),
    }
}

/// Applies the file to its base.
fn merge(table: &DeTable<'_>) -> Result<Plan, Problem> {
    let mut plan = base(table)?;
    if table.contains_key("operations") {
        // A mix must be complete: a weight left over from the base would go unnoticed.
        plan.operations = OperationWeights::default();
    }
    let is_own = |value: &Spanned<DeValue<'_>>| matches!(value.get_ref(), DeValue::Array(_));
    if table.get("operations").is_some_and(is_own) && !table.contains_key("keys") {
        // The default, YCSB's own distribution, does not apply to own collections.
        plan.keys = KeyDistribution::Uniform {};
    }
    lay_file_over(&plan, table)
}

fn lay_file_over(plan: &Plan, table: &DeTable<'_>) -> Result<Plan, Problem> {
    let mut merged = serde_json::to_value(plan).map_err(|error| Problem::new(error.to_string()))?;
    for (name, value) in table.iter().filter(|(name, _)| name.get_ref() != BASE) {
        lay_over(&mut merged[name.get_ref().as_ref()], value.get_ref());
    }
    if gives_only(table, "phases", "operations", "duration") {
        merged["phases"]["duration"] = Value::Null;
    }
    if gives_only(table, "data", "records", "times_cache") {
        merged["data"]["times_cache"] = Value::Null;
    }
    let laid = serde_json::from_value(merged).map_err(|error| Problem::new(error.to_string()))?;
    Ok(Plan { folder: plan.folder.clone(), ..laid })
}

/// The plan with the valid keys of a file; `None` if its base is unknown.
fn merge_what_fits(table: &DeTable<'_>) -> Option<Plan> {
    let mut plan = base(table).ok()?;
    let mut keep = |section: &str, key: Option<&str>, value: &DeValue<'_>| {
        let mut merged = serde_json::to_value(&plan).ok()?;
        let section = &mut merged[section];
        let place = match key {
            // A table instead of a text or a number cannot be skipped.
            Some(_) if !(section.is_object() || section.is_null()) => return None,
            Some(key) => &mut section[key],
            None => section,
        };
        lay_over(place, value);
        plan = serde_json::from_value(merged).ok()?;
        Some(())
    };
    for (name, value) in table.iter().filter(|(name, _)| name.get_ref() != BASE) {
        let name = name.get_ref().as_ref();
        // A key with an invalid value is skipped: it already has its own problem.
        match value.get_ref() {
            DeValue::Table(keys) => {
                for (key, value) in keys {
                    keep(name, Some(key.get_ref().as_ref()), value.get_ref());
                }
            }
            value => {
                keep(name, None, value);
            }
        }
    }
    Some(plan)
}

/// Whether the file sets `name` in a table, but not `other`: a number of operations alone must end
/// the phase alone, not together with the default duration.
fn gives_only(table: &DeTable<'_>, inside: &str, name: &str, other: &str) -> bool {
    let Some(DeValue::Table(inner)) = table.get(inside).map(Spanned::get_ref) else {
        return false;
    };
    inner.contains_key(name) && !inner.contains_key(other)
}

/// Applies a table to the target: a table changes the keys that it contains, but a table that
/// chooses a variant replaces the whole target.
fn lay_over(target: &mut Value, value: &DeValue<'_>) {
    match value {
        DeValue::Table(table) if !chooses_variant(target, table) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            for (name, value) in table.iter() {
                lay_over(&mut target[name.get_ref().as_ref()], value.get_ref());
            }
        }
        other => *target = to_json(other),
    }
}

/// Whether a table chooses a variant: `server.kind` is a plain choice, but the other tags decide
/// which keys a table has.
fn chooses_variant(target: &Value, table: &DeTable<'_>) -> bool {
    table.contains_key("distribution")
        || (table.contains_key("kind") && target.get("durable_writes").is_none())
}

fn to_json(value: &DeValue<'_>) -> Value {
    let value = Spanned::new(0..0, value.clone());
    Value::deserialize(ValueDeserializer::from(value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;
    use proptest::prelude::*;

    fn problems(text: &str) -> Vec<String> {
        parse(text, "test.toml").unwrap_err().problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn plan_file_changes_parts_of_its_base() {
        let text = "base = \"e\"\nname = \"mine\"\n[data]\nrecords = 5_000\n[access]\nmin_scan_length = 2\n";
        let plan = parse(text, "t").unwrap();
        assert_eq!((plan.name.as_str(), plan.data.records), ("mine", 5000));
        assert_eq!((plan.access.min_scan_length, plan.access.max_scan_length), (2, 100));
        assert_eq!(plan.operations.scan, 0.95);
    }

    #[test]
    fn unknown_key_suggests_keys_of_its_table_and_of_others() {
        for (text, suggested) in [
            ("[server]\ncompressor = 1", "`server.block_compressor`"),
            ("[server]\ncahce = 1", "`server.cache`"),
            ("block_compressor = 1", "`server.block_compressor`"),
            ("[server.options.wiredTiger]\nblock_compressor = 1", "`server.block_compressor`"),
            ("[data]\nclients = 1", "`client.clients`"),
            ("duraton = 1", "`phases.duration`"),
        ] {
            let found = problems(text).concat();
            assert!(found.contains(&format!("did you mean {suggested}")), "{text}: {found}");
        }
        let found = problems("[operations]\nfind = 1").concat();
        assert!(
            found.contains("read_modify_write") && found.contains("docs/workloads.md"),
            "{found}"
        );
        assert!(!problems("zzzzzz = 1").concat().contains("did you mean"));
    }

    #[test]
    fn exporter_disk_may_be_a_text_or_a_list() {
        let exporter = |disk: &str| {
            let name = "[[observe.exporters]]\nname = \"node\"\nurl = \"http://db1:9100/metrics\"";
            format!("base = \"a\"\n{name}\ndisk = {disk}\n")
        };
        let disks = |disk: &str| {
            let plan = parse(&exporter(disk), "t").unwrap();
            plan.observe.exporters[0].disk.as_ref().unwrap().names().to_vec()
        };
        assert_eq!(disks("\"vda\""), ["vda"]);
        assert_eq!(disks("[\"vda\", \"vdb\"]"), ["vda", "vdb"]);
        let number = problems(&exporter("3")).concat();
        assert!(
            number.contains("`observe.exporters[0].disk`") && number.contains("integer"),
            "{number}"
        );
    }

    #[test]
    fn settings_may_be_typed_values_or_texts() {
        let mut plan = default_plan();
        let settings = [
            Setting::new("data.collection", "42"),
            Setting::new("phases.operations", 7),
            Setting::new("server.data_dirs", vec!["/a".to_owned(), "/b".to_owned()]),
            Setting::from_text("client.clients", "5"),
            Setting::new("client.clients", 6),
        ];
        set(&mut plan, &settings).unwrap();
        assert_eq!(plan.data.collection, "42");
        assert_eq!((plan.phases.operations, plan.phases.duration), (Some(7), None));
        assert_eq!(plan.server.data_dirs, ["/a", "/b"]);
        assert_eq!(plan.client.clients, 6);
        let before = plan.clone();
        let wrong = [Setting::new("client.clients", "many"), Setting::new("server.cahce", 1)];
        let problems = set(&mut plan, &wrong).unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].message.starts_with("`client.clients`: "));
        assert!(problems[1].message.contains("`cahce`"));
        assert!(plan == before);
    }

    #[test]
    fn number_of_documents_replaces_a_multiple_of_the_cache() {
        let of = |text: &str| parse(text, "t").unwrap().data;
        let base = "base = \"storage-compare\"\n";
        assert_eq!(of(base).times_cache, Some(3.0));
        let counted = of(&format!("{base}[data]\nrecords = 5\n"));
        assert_eq!((counted.times_cache, counted.records), (None, 5));
    }

    #[test]
    fn table_that_chooses_a_variant_replaces_the_base_table() {
        let text = "base = \"a\"\n[keys]\ndistribution = \"zipfian\"\nexponent = 1.2\n[schedule]\nkind = \"poisson\"\nrate_per_s = 100\n";
        let plan = parse(text, "t").unwrap();
        assert_eq!(plan.keys, KeyDistribution::Zipfian { exponent: 1.2 });
        let Schedule::Poisson { rate_per_s, max_start_delay } = plan.schedule else {
            panic!("{plan:?}")
        };
        assert_eq!((rate_per_s, max_start_delay), (100.0, Span::from_secs(10)));
    }

    #[test]
    fn all_problems_of_a_file_are_reported_with_their_places() {
        let text = "\
name = 7
[data]
recrods = 10
field_count = -1
field_length = { distribution = \"constnt\", bytes = 3 }
[keys]
distribution = \"hotspot\"
hot_data_ratio = 0.2
[client]
timeout = \"soon\"
pin = 1
[operations]
read = \"all\"
[phases]
durration = \"1s\"
";
        let problems = problems(text);
        let places: Vec<&str> = problems.iter().map(|p| p.split(':').next().unwrap()).collect();
        assert_eq!(
            places,
            [
                "line 1, column 8",
                "line 3, column 1",
                "line 4, column 15",
                "line 5, column 33",
                "line 6, column 1",
                "line 10, column 11",
                "line 11, column 7",
                "line 13, column 8",
                "line 15, column 1"
            ],
            "{problems:#?}"
        );
        for (place, part) in
            [(1, "`data.records`"), (3, "`constant`"), (4, "`keys.hot_operation_ratio`")]
        {
            assert!(problems[place].contains(part), "{}", problems[place]);
        }
    }

    #[test]
    fn unexpected_table_is_one_problem() {
        for text in ["name.of = \"x\"\n", "[[name]]\n", "traces.start = \"1s\"\n"] {
            assert_eq!(problems(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn problems_of_the_whole_plan_have_places() {
        let problems = problems("base = \"a\"\n[client]\nclients = 2\nthreads = 5\n");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("line 4, column 11: `client.threads`"), "{}", problems[0]);
    }

    #[test]
    fn mix_replaces_the_mix_of_the_base() {
        let plan = parse("base = \"a\"\n[operations]\nread = 1\n", "t").unwrap();
        assert_eq!((plan.operations.read, plan.operations.update), (1.0, 0.0));
    }

    #[test]
    fn operations_alone_end_the_phase_alone() {
        let plan = parse("base = \"a\"\n[phases]\noperations = 7\n", "t").unwrap();
        assert_eq!((plan.phases.operations, plan.phases.duration), (Some(7), None));
    }

    #[test]
    fn weight_that_is_not_finite_has_a_place() {
        let problems = problems("base = \"a\"\n[operations]\nread = nan\n");
        assert!(problems[0].starts_with("line 3, column 8: `operations.read`"), "{problems:?}");
    }

    #[test]
    fn broken_syntax_has_a_place() {
        let problems = problems("name = \"x\"\n[data\nrecords = 1\n");
        assert!(problems[0].starts_with("line 2"), "{problems:?}");
    }

    #[test]
    fn printed_built_in_plans_are_read_back_unchanged() {
        for name in builtin::names() {
            let plan = builtin::find(name).unwrap();
            assert_eq!(parse(&to_toml(&plan), name).unwrap(), plan);
        }
    }

    proptest! {
        #[test]
        fn printed_plan_is_read_back_unchanged(
            records in 1u64..1 << 40,
            rate in 0.001f64..1e8,
            poisson: bool,
            seed in 0u64..1 << 63,
            millis in 1u64..10_000_000,
            ratio in 0.0f64..=1.0,
            operations in proptest::option::of(1u64..1 << 60),
            timed: bool,
        ) {
            let mut plan = builtin::find("b").unwrap();
            plan.data.records = records;
            plan.data.compressible_ratio = ratio;
            plan.client.seed = seed;
            plan.client.timeout = Span(std::time::Duration::from_millis(millis));
            plan.phases.operations = operations;
            if operations.is_some() && !timed {
                plan.phases.duration = None;
            }
            let max_start_delay = Span(std::time::Duration::from_millis(millis));
            plan.schedule = if poisson {
                Schedule::Poisson { rate_per_s: rate, max_start_delay }
            } else {
                Schedule::Constant { rate_per_s: rate, max_start_delay }
            };
            prop_assert_eq!(parse(&to_toml(&plan), "printed").unwrap(), plan);
        }
    }
}
