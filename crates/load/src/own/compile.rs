//! Compiles the templates of own collections and operations.

use super::steps::{Each, OwnOperation, OwnStep, When};
use super::transaction::{Ends, OwnTransaction};
use super::{OwnCollection, program_error, workload_error};
use crate::error::LoadError;
use crate::operation::Access;
use crate::program::{Collection, Owner, Program, Templates};
use crate::workload::Concerns;
use bson::{Bson, Document, doc};
use dyno_plan::Plan;
use dyno_plan::model::KeyDistribution;
use dyno_plan::workload::template::{Generator, Law, Value};
use dyno_plan::workload::{ReadOperation, ReadStep};
use dyno_wire::command::{
    Acknowledgement, CommandOptions, CommandSet, START_TRANSACTION, WriteConcern,
};

/// Exponent of the law for `latest`, as in YCSB.
const LATEST_EXPONENT: f64 = 0.99;

/// Time limit of the server for the write concern of a commit that is sent again.
const COMMIT_AGAIN_WTIMEOUT_MS: i32 = 10_000;

/// Commands whose result is read, with an option for the read concern.
const READS: [&str; 4] = ["find", "aggregate", "count", "distinct"];
/// Commands that take a write concern.
const WRITES: [&str; 4] = ["insert", "update", "delete", "findAndModify"];

pub(super) fn collection_of(read: &dyno_plan::workload::ReadCollection) -> Collection {
    Collection {
        name: read.name.clone(),
        records: read.records,
        variables: read.variables.clone(),
        document: read.document.clone(),
    }
}

/// The law of `%from` without a law of its own. A valid plan has no other distributions.
pub(super) fn law_of(keys: &KeyDistribution) -> Law {
    match *keys {
        KeyDistribution::Zipfian { exponent } => Law::Zipf { exponent },
        KeyDistribution::Latest {} => Law::Latest { exponent: LATEST_EXPONENT },
        KeyDistribution::Hotspot { hot_data_ratio, hot_operation_ratio } => {
            Law::Hotspot { data: hot_data_ratio, draws: hot_operation_ratio }
        }
        KeyDistribution::Sequential {} => Law::Sequential,
        KeyDistribution::Uniform {}
        | KeyDistribution::ScrambledZipfian {}
        | KeyDistribution::Exponential { .. } => Law::Uniform,
    }
}

pub(super) struct Compiler<'a> {
    pub(super) plan: &'a Plan,
    pub(super) concerns: &'a Concerns,
    pub(super) templates: &'a Templates<'a>,
}

impl Compiler<'_> {
    pub(super) fn collection(
        &self,
        index: usize,
        collection: &Collection,
    ) -> Result<OwnCollection, LoadError> {
        let program = Program::of_collection(index, self.templates);
        Ok(OwnCollection {
            name: collection.name.clone(),
            records: collection.records,
            program: program.map_err(program_error(&collection.name))?,
            commands: self.command_set(&collection.name, false, None)?,
            retryable: self.command_set(&collection.name, true, None)?,
        })
    }

    pub(super) fn operation(&self, read: &ReadOperation) -> Result<OwnOperation, LoadError> {
        let needed = replies_in(read);
        let steps = read.steps.iter().enumerate();
        let steps = steps.map(|(index, step)| {
            let keeps_reply = needed.contains(&index);
            Ok(OwnStep { keeps_reply, ..self.step(read, index, step)? })
        });
        Ok(OwnOperation {
            name: read.name.clone(),
            weight: read.weight,
            steps: steps.collect::<Result<_, LoadError>>()?,
            expect: read.expect,
            transaction: read.transaction.map(|abort| self.transaction(read, abort)).transpose()?,
            needs_replies: !needed.is_empty(),
        })
    }

    fn step(
        &self,
        read: &ReadOperation,
        index: usize,
        step: &ReadStep,
    ) -> Result<OwnStep, LoadError> {
        let mut fields = fields_of(&step.command);
        let command = fields.first().map(|(name, _)| name.clone()).unwrap_or_default();
        let mut access = access_of(&command, &fields);
        let read_preference = self.read_preference(read, &command);
        if read.transaction.is_some() {
            // Its commands are not sent twice on their own, and do not have concerns of their own.
            access = Access::Writes;
        } else {
            self.add_concerns(read, &command, &mut fields)?;
        }
        let target = match fields.first() {
            Some((_, Value::Constant(Bson::String(name)))) => name.clone(),
            // A command for the whole database.
            _ => "$cmd.aggregate".to_owned(),
        };
        let mut more = doc! { "$db": &self.plan.data.database };
        if let Some(preference) = &read_preference {
            more.insert("$readPreference", preference.clone());
        }
        let mode = read_preference.as_ref().and_then(|one| one.get_str("mode").ok());
        let mut variables = read.variables.clone();
        // The load sets it before each command.
        let element =
            step.each.as_ref().map(|each| (each.name.clone(), Value::Constant(Bson::Null)));
        variables.extend(element);
        let compile = |template: &Value| {
            let owner = Owner::Step { operation: &read.name, step: index, variables: &variables };
            Program::compile(template, owner, self.templates).map_err(program_error(&read.name))
        };
        // No field of a command has such a name, so the values differ from those of the command.
        let compile_value = |name: &str, value: &Value| {
            compile(&Value::document(vec![(name.into(), value.clone())]))
        };
        let each = step.each.as_ref().map(|each| {
            let list = compile_value("%each", &each.of)?;
            Ok(Each { list, variable: read.variables.len(), at_most: each.at_most })
        });
        let when = step
            .when
            .as_ref()
            .map(|when| Ok(When { count: compile_value("%when", &when.count)?, is: when.is }));
        Ok(OwnStep {
            access,
            program: compile(&Value::document(fields))?,
            when: when.transpose()?,
            each: each.transpose()?,
            keeps_reply: false,
            more: elements(&more)?,
            cursor: self.command_set(&target, false, mode)?,
            get_more: encoded(&doc! { "getMore": 0_i64, "collection": &target })?,
            read_preference,
        })
    }

    fn transaction(&self, read: &ReadOperation, abort: f64) -> Result<OwnTransaction, LoadError> {
        let level = self.concerns.read_level.as_ref().map(|level| doc! { "level": level });
        let read_concern = read.read_concern.clone().or(level);
        let write = self.concerns.write.as_ref();
        let write = write.map(write_concern).filter(|concern| !concern.is_empty());
        let write_concern = read.write_concern.clone().or(write);
        let end = |name: &str, concern: Option<Document>| {
            let mut command = doc! { name: 1 };
            command.extend(concern.map(|concern| ("writeConcern".to_owned(), concern.into())));
            encoded(&command)
        };
        // As drivers do it: https://github.com/mongodb/specifications/blob/master/source/transactions/transactions.md
        let mut majority = doc! { "w": "majority", "wtimeout": COMMIT_AGAIN_WTIMEOUT_MS };
        for (name, value) in write_concern.iter().flatten().filter(|(name, _)| *name != "w") {
            majority.insert(name, value.clone());
        }
        let mut first = START_TRANSACTION.to_vec();
        let concern = read_concern.iter().map(|concern| doc! { "readConcern": concern.clone() });
        for concern in concern {
            first.extend(elements(&concern)?);
        }
        let draw = Value::Generated(Box::new(Generator::Boolean { probability: abort }));
        let owner = Owner::Step { operation: &read.name, step: 0, variables: &[] };
        let draw = Value::document(vec![("%abort".into(), draw)]);
        let draw = (abort > 0.0).then(|| Program::compile(&draw, owner, self.templates));
        Ok(OwnTransaction {
            abort: draw.transpose().map_err(program_error(&read.name))?,
            commands: Ends {
                commit: end("commitTransaction", write_concern.clone())?,
                commit_again: end("commitTransaction", Some(majority))?,
                abort: end("abortTransaction", write_concern.clone())?,
            },
            first,
            read_concern,
            write_concern,
        })
    }

    /// The operation's own read preference, otherwise the connection's for commands that read.
    fn read_preference(&self, read: &ReadOperation, command: &str) -> Option<Document> {
        let of_connection = self.concerns.read_preference.as_ref();
        // Transactions read from the primary.
        let of_connection =
            of_connection.filter(|_| READS.contains(&command) && read.transaction.is_none());
        let of_connection = of_connection.map(|mode| doc! { "mode": mode });
        read.read_preference.clone().or(of_connection)
    }

    /// Adds the operation's own concerns, otherwise the connection's, unless the command has its own.
    fn add_concerns(
        &self,
        read: &ReadOperation,
        command: &str,
        fields: &mut Vec<(String, Value)>,
    ) -> Result<(), LoadError> {
        let level = self.concerns.read_level.as_ref().filter(|_| READS.contains(&command));
        let level = level.map(|level| doc! { "level": level });
        let write = self.concerns.write.as_ref().filter(|_| WRITES.contains(&command));
        let write = write.map(write_concern).filter(|concern| !concern.is_empty());
        let concerns = [
            ("readConcern", &read.read_concern, level),
            ("writeConcern", &read.write_concern, write),
        ];
        for (name, own, of_connection) in concerns {
            let is_in_command = fields.iter().any(|(field, _)| field == name);
            let concern = match (own, is_in_command) {
                (Some(_), true) => {
                    let reason = format!("`{}` has `{name}` twice", read.name);
                    return Err(workload_error(reason));
                }
                (None, true) => None,
                (own, false) => own.clone().or(of_connection),
            };
            let concern = concern.map(|concern| Value::Constant(Bson::Document(concern)));
            fields.extend(concern.map(|concern| (name.to_owned(), concern)));
        }
        Ok(())
    }

    fn command_set(
        &self,
        collection: &str,
        retryable_writes: bool,
        read_preference: Option<&str>,
    ) -> Result<CommandSet, LoadError> {
        let options = CommandOptions {
            database: self.plan.data.database.clone(),
            collection: collection.to_owned(),
            write_concern: self.concerns.write.clone(),
            read_preference: read_preference.map(str::to_owned),
            retryable_writes,
            ..CommandOptions::default()
        };
        CommandSet::new(&options).map_err(|error| workload_error(error.to_string()))
    }
}

fn encoded(document: &Document) -> Result<Vec<u8>, LoadError> {
    document.to_vec().map_err(|error| workload_error(error.to_string()))
}

/// Elements of a document, encoded.
pub(super) fn elements(document: &Document) -> Result<Vec<u8>, LoadError> {
    let bytes = encoded(document)?;
    Ok(bytes[4..bytes.len() - 1].to_vec())
}

/// Indexes of the steps whose replies an operation uses.
fn replies_in(read: &ReadOperation) -> Vec<usize> {
    let mut found = Vec::new();
    let mut visit = |generator: &Generator| {
        if let Generator::Reply { step, .. } = generator {
            found.push(*step);
        }
    };
    let of_steps = read.steps.iter().flat_map(|step| {
        let each = step.each.iter().map(|each| &each.of);
        let when = step.when.iter().map(|when| &when.count);
        each.chain(when).chain([&step.command])
    });
    let variables = read.variables.iter().map(|(_, value)| value);
    variables.chain(of_steps).for_each(|value| value.for_each_generator(&mut visit));
    found
}

/// The fields of a command.
pub(super) fn fields_of(command: &Value) -> Vec<(String, Value)> {
    match command {
        Value::Document(fields) => fields.clone(),
        Value::Constant(Bson::Document(document)) => {
            let fields = document.iter();
            fields.map(|(name, value)| (name.clone(), Value::Constant(value.clone()))).collect()
        }
        _ => Vec::new(),
    }
}

/// Servers recognize a second attempt at inserts, at changes of single documents, and at `findAndModify`.
pub(super) fn access_of(command: &str, fields: &[(String, Value)]) -> Access {
    let changes_one = |statements: &str, name: &str, single: fn(Option<&Value>) -> bool| {
        let statements = fields.iter().find(|(field, _)| field == statements);
        let statements = statements.map(|(_, value)| elements_of(value)).unwrap_or_default();
        let is_single = |statement: &Value| {
            let fields = fields_of(statement);
            single(fields.iter().find(|(field, _)| field == name).map(|(_, value)| value))
        };
        !statements.is_empty() && statements.iter().all(is_single)
    };
    let is_once = match command {
        name if READS.contains(&name) => return read_access(fields),
        "insert" | "findAndModify" => true,
        "update" => changes_one("updates", "multi", |multi| {
            matches!(multi, None | Some(Value::Constant(Bson::Boolean(false))))
        }),
        "delete" => changes_one("deletes", "limit", |limit| {
            matches!(limit, Some(Value::Constant(Bson::Int32(1) | Bson::Int64(1))))
        }),
        _ => false,
    };
    if is_once { Access::WritesOnce } else { Access::Writes }
}

/// An aggregation that writes its result is a write.
fn read_access(fields: &[(String, Value)]) -> Access {
    let pipeline = fields.iter().find(|(name, _)| name == "pipeline");
    let stages = pipeline.map(|(_, value)| elements_of(value)).unwrap_or_default();
    let writes = stages.iter().any(|stage| {
        fields_of(stage).first().is_some_and(|(name, _)| name == "$out" || name == "$merge")
    });
    if writes { Access::Writes } else { Access::Reads }
}

fn elements_of(array: &Value) -> Vec<Value> {
    match array {
        Value::Array(values) => values.clone(),
        Value::Constant(Bson::Array(values)) => {
            values.iter().cloned().map(Value::Constant).collect()
        }
        _ => Vec::new(),
    }
}

fn write_concern(concern: &WriteConcern) -> Document {
    let mut document = Document::new();
    match &concern.w {
        Some(Acknowledgement::Number(number)) => {
            document.insert("w", i64::from(*number));
        }
        Some(Acknowledgement::Majority) => {
            document.insert("w", "majority");
        }
        Some(Acknowledgement::Tag(name)) => {
            document.insert("w", name);
        }
        None => {}
    }
    if let Some(journal) = concern.journal {
        document.insert("j", journal);
    }
    if let Some(wtimeout_ms) = concern.wtimeout_ms {
        document.insert("wtimeout", i64::try_from(wtimeout_ms).unwrap_or(i64::MAX));
    }
    document
}
