//! A workload as a plan file describes it. Templates are texts here; `check` reads them.

use super::template::CommandNames;
use crate::names::named;
use crate::operation::Effect;
use crate::units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Collections, operations and checks of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// The documents.
    pub data: Data,
    /// The operations, which the load chooses by weight, or starts at their own rates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// Aggregations with an expected result, after the load and after the measurement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Folder of the plan file. Templates can name files inside of it, and no files when absent.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
}

/// The documents of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Data {
    /// The collections, which are loaded in this order.
    pub collections: Vec<Collection>,
}

/// A collection and its documents.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Name in the database and in `%from`, without a dot.
    pub name: String,
    /// Number of documents to load. With `documents_file`, all documents of the file when absent.
    pub records: Option<u64>,
    /// Number of collections of this kind. From 2 on, their names end in a number from 1.
    #[serde(default = "one_instance")]
    #[schemars(range(min = 1, max = 10000))]
    pub instances: u32,
    /// Template of a document. Either this or `documents_file`.
    pub document: Option<String>,
    /// File with a document as Extended JSON in each line, in the plan's folder.
    pub documents_file: Option<String>,
    /// Values that several fields of a document share, by the names that the template uses.
    #[serde(default, rename = "let", skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Options of the command `create`, such as `{capped: true, size: 1000000}`.
    pub options: Option<String>,
    /// Secondary indexes: their keys, or a table with options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<Index>,
}

fn one_instance() -> u32 {
    1
}

/// A secondary index: its keys, such as `{customer: 1, placed: -1}`, or a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "IndexForm", into = "IndexForm")]
#[schemars(with = "IndexForm")]
pub struct Index {
    pub keys: String,
    /// Options of the index, such as `{unique: true}`.
    pub options: Option<String>,
    pub build: BuildTime,
}

named! {
    /// When an index is built.
    #[derive(Default)]
    BuildTime {
        /// Before the load, so that each inserted document is indexed.
        #[default]
        Before = "before",
        /// After the load, from all documents.
        After = "after",
    }
}

/// Form of an index in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum IndexForm {
    /// Keys of an index that is built before the load.
    Keys(String),
    /// An index in detail.
    Table(IndexTable),
}

#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IndexTable {
    /// Keys of the index, such as `{customer: 1}`.
    keys: String,
    /// Options of the index, such as `{unique: true}`.
    options: Option<String>,
    /// When the index is built.
    #[serde(default)]
    build: BuildTime,
}

impl From<IndexForm> for Index {
    fn from(form: IndexForm) -> Self {
        match form {
            IndexForm::Keys(keys) => Index { keys, options: None, build: BuildTime::default() },
            IndexForm::Table(IndexTable { keys, options, build }) => Index { keys, options, build },
        }
    }
}

impl From<Index> for IndexForm {
    fn from(Index { keys, options, build }: Index) -> Self {
        match (options, build) {
            (None, BuildTime::Before) => IndexForm::Keys(keys),
            (options, build) => IndexForm::Table(IndexTable { keys, options, build }),
        }
    }
}

/// An operation: one command, or several steps that count as one operation.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Operation {
    /// Name in reports.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(required)]
    pub name: String,
    /// Share of the operations, relative to the weights of the others. Either this or `rate`.
    pub weight: Option<f64>,
    /// Operations per second, apart from the weights.
    pub rate: Option<Rate>,
    /// Template of the command. Either this or `steps`.
    pub command: Option<String>,
    /// Commands in order: templates, or tables with `each` and `when`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Values that are drawn once for the operation, by the names that its commands use.
    #[serde(rename = "let", skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Number of documents that the operation returns or changes: `3`, `1..20` or `1..`.
    #[serde(deserialize_with = "text_or_count")]
    #[schemars(with = "Option<TextOrCount>")]
    pub expect: Option<String>,
    /// Runs the steps in a transaction, which is retried if an error's label allows it.
    pub transaction: bool,
    /// Share of the transactions that end in `abortTransaction`, from 0 to 1.
    pub abort: Option<f64>,
    /// Read concern, such as `{level: "majority"}`.
    pub read_concern: Option<String>,
    /// Write concern, such as `{w: "majority"}`.
    pub write_concern: Option<String>,
    /// Read preference, such as `{mode: "secondary"}`.
    pub read_preference: Option<String>,
    /// Repeats the command for each element of a list.
    pub each: Option<Each>,
    /// Sends the command only if a count has a value.
    pub when: Option<When>,
}

/// A step of an operation: the template of its command, or a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StepForm", into = "StepForm")]
#[schemars(with = "StepForm")]
pub struct Step {
    pub command: String,
    pub each: Option<Each>,
    pub when: Option<When>,
}

/// Form of a step in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum StepForm {
    /// Template of a command that is always sent once.
    Command(String),
    /// A step in detail.
    Table(StepTable),
}

#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepTable {
    /// Template of the command.
    command: String,
    /// Repeats the command for each element of a list.
    each: Option<Each>,
    /// Sends the command only if a count has a value.
    when: Option<When>,
}

impl From<StepForm> for Step {
    fn from(form: StepForm) -> Self {
        match form {
            StepForm::Command(command) => Step { command, each: None, when: None },
            StepForm::Table(StepTable { command, each, when }) => Step { command, each, when },
        }
    }
}

impl From<Step> for StepForm {
    fn from(Step { command, each, when }: Step) -> Self {
        match (each, when) {
            (None, None) => StepForm::Command(command),
            (each, when) => StepForm::Table(StepTable { command, each, when }),
        }
    }
}

/// Repeats a command for each element of a list.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Each {
    /// Name of the element in the command's template.
    pub name: String,
    /// Template of the list.
    pub of: String,
    /// Number of elements at most; further elements are skipped. Required if the list comes from a reply.
    #[schemars(range(min = 1, max = 100000))]
    pub at_most: Option<u32>,
}

/// A condition of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Template of a count, such as `{%reply: "0.n"}`.
    pub count: String,
    /// Counts with which the command is sent: `0`, `1..20` or `1..`.
    pub is: String,
}

/// An aggregation with an expected result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name in reports.
    pub name: String,
    /// Collection that is aggregated.
    pub collection: String,
    /// Pipeline, such as `[{$match: {left: {$lt: 0}}}]`.
    pub aggregate: String,
    /// Number of returned documents (`0`, `1..20` or `1..`), or the documents as a list.
    #[serde(deserialize_with = "required_text_or_count")]
    #[schemars(with = "TextOrCount")]
    pub expect: String,
}

/// A count as a number or as a text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum TextOrCount {
    /// A count.
    Count(u64),
    /// A text.
    Text(String),
}

fn required_text_or_count<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match TextOrCount::deserialize(from)? {
        TextOrCount::Count(count) => count.to_string(),
        TextOrCount::Text(text) => text,
    })
}

fn text_or_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    required_text_or_count(from).map(Some)
}

impl Operation {
    /// Effect on documents, by the name of its command. Unknown commands count as updates.
    pub fn effect(&self) -> Effect {
        let steps = self.all_steps();
        let effects = steps.iter().map(|step| effect_of(&step.command));
        // An operation that writes in one of its steps writes.
        effects.max_by_key(|effect| *effect != Effect::Read).unwrap_or(Effect::Read)
    }

    /// Name and effect of each step with statistics of its own: of all steps if there are several.
    pub fn counted_steps(&self) -> Vec<(String, Effect)> {
        let steps = self.steps.iter().enumerate().filter(|_| self.steps.len() > 1);
        let name = |index: usize| format!("{}:{}", self.name, index + 1);
        steps.map(|(index, step)| (name(index), effect_of(&step.command))).collect()
    }

    /// The steps; a single command is one step.
    pub fn all_steps(&self) -> Vec<Step> {
        let single = self.command.as_ref().map(|command| Step {
            command: command.clone(),
            each: self.each.clone(),
            when: self.when.clone(),
        });
        single.into_iter().chain(self.steps.iter().cloned()).collect()
    }
}

/// Effect of a command's template.
fn effect_of(command: &str) -> Effect {
    let Some(CommandNames { command, stages }) = CommandNames::read(command) else {
        return Effect::Update;
    };
    // Such an aggregation writes its result into a collection.
    let writes_result = stages.iter().any(|stage| matches!(stage.as_str(), "$merge" | "$out"));
    match command.as_str() {
        "aggregate" if writes_result => Effect::Update,
        "find" | "aggregate" | "count" | "distinct" | "ping" | "hello" | "dbStats"
        | "collStats" | "listIndexes" | "listCollections" => Effect::Read,
        "insert" => Effect::Insert,
        "delete" => Effect::Delete,
        _ => Effect::Update,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = r#"
        [[data.collections]]
        name = "orders"
        records = 2_000_000
        indexes = ['{customer: 1, placed: -1}', { keys = '{status: 1}', build = "after" }]
        document = '{ _id: "%number" }'

        [[operations]]
        name = "orders of a customer"
        weight = 80
        command = '{find: "orders"}'
        expect = "1..20"

        [[operations]]
        name = "checkout"
        rate = "5/s"
        transaction = true
        let = { sku = '{%from: "stock._id"}' }
        steps = [
          '{insert: "orders", documents: ["%new orders"]}',
          { command = '{ping: 1}', when = { count = '{%reply: "0.n"}', is = "1.." } },
        ]
        expect = 1

        [[checks]]
        name = "no negative stock"
        collection = "stock"
        aggregate = '[{$match: {left: {$lt: 0}}}]'
        expect = 0
    "#;

    #[test]
    fn workload_is_read_and_survives_its_own_file() {
        let workload: Workload = toml::from_str(SHOP).unwrap();
        let orders = &workload.data.collections[0];
        assert_eq!((orders.records, orders.instances), (Some(2_000_000), 1));
        assert_eq!(orders.indexes[0].build, BuildTime::Before);
        assert_eq!(orders.indexes[1].build, BuildTime::After);
        let checkout = &workload.operations[1];
        assert_eq!(checkout.expect.as_deref(), Some("1"));
        assert_eq!(checkout.all_steps().len(), 2);
        assert!(checkout.steps[0].when.is_none() && checkout.steps[1].when.is_some());
        assert_eq!(workload.operations[0].all_steps().len(), 1);
        let printed = toml::to_string(&workload).unwrap();
        assert_eq!(toml::from_str::<Workload>(&printed).unwrap(), workload, "{printed}");
    }

    #[test]
    fn aggregation_writes_if_a_stage_does() {
        let effect = |stage: &str| {
            let command = format!("{{aggregate: 'a', pipeline: [{{$limit: 1}}, {stage}]}}");
            Operation { command: Some(command), ..Operation::default() }.effect()
        };
        assert_eq!(effect("{$merge: 'b'}"), Effect::Update);
        assert_eq!(effect("{$out: 'b'}"), Effect::Update);
        assert_eq!(effect("{$set: {b: {$mergeObjects: ['$outer', {}]}}}"), Effect::Read);
    }

    #[test]
    fn unknown_keys_are_refused() {
        for wrong in ["[[operations]]\nname = \"a\"\nwait = 1", "[[checks]]\nname = \"a\"", "[dat]"]
        {
            assert!(toml::from_str::<Workload>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn schema_accepts_what_the_reader_accepts() {
        let schema = serde_json::to_value(schemars::schema_for!(Workload)).unwrap();
        let document: toml::Table = toml::from_str(SHOP).unwrap();
        let document = serde_json::to_value(document).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let objections: Vec<String> =
            validator.iter_errors(&document).map(|one| one.to_string()).collect();
        assert_eq!(objections, Vec::<String>::new());
    }
}
