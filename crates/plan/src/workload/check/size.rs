//! Upper bounds of the sizes of generated values in BSON.

use super::lookup::{CollectionPath, Part, Sources, parts};
use super::{Checker, Variables};
use crate::workload::model::Workload;
use crate::workload::template::{
    Function, Generator, MAX_DOCUMENT_BYTES, MAX_PAD_WIDTH, Size, Value,
};
use bson::Bson;
use std::cell::RefCell;
use std::collections::HashMap;

/// Bytes of a message to the server at most (`maxMessageSizeBytes` in the reply to `hello`).
pub(super) const MAX_MESSAGE_BYTES: u64 = 48_000_000;

/// An `_id` that the client adds: type, name and 12 bytes.
const ADDED_ID_BYTES: u64 = 17;

/// Decimal digits of an integer of 64 bits, with its sign.
const INTEGER_DIGITS: u64 = 20;

/// Characters of the longest double, such as -5e-324 without its exponent.
const DOUBLE_DIGITS: u64 = 327;

impl Checker<'_> {
    pub(super) fn sizes_of_documents(&mut self, sources: &Sources) {
        for (index, bytes) in of_documents(self.workload, sources).into_iter().enumerate() {
            if bytes > u64::from(MAX_DOCUMENT_BYTES) {
                let key = format!("data.collections[{index}].document");
                let message = format!(
                    "`{key}`: a document can have {bytes} bytes, and the server accepts 16 MiB"
                );
                self.wrong(&key, message);
            }
        }
    }
}

/// Bytes of the largest document of each collection.
pub(super) fn of_documents(workload: &Workload, sources: &Sources) -> Vec<u64> {
    let sizes = Sizes::new(sources);
    let collections = workload.data.collections.iter();
    let paths = collections.map(|collection| (collection.name.clone(), Vec::new()));
    paths.map(|path| sizes.of_path(&path).saturating_add(ADDED_ID_BYTES)).collect()
}

/// Computes the size at each path once.
pub(super) struct Sizes<'a> {
    sources: &'a Sources,
    of_paths: RefCell<HashMap<CollectionPath, u64>>,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        Sizes { sources, of_paths: RefCell::default() }
    }

    /// Bytes of the value at a path of a collection's documents.
    fn of_path(&self, at: &CollectionPath) -> u64 {
        if let Some(bytes) = self.of_paths.borrow().get(at) {
            return *bytes;
        }
        // Ends the computation if values depend on themselves, which is reported elsewhere.
        self.of_paths.borrow_mut().insert(at.clone(), 0);
        let source = self.sources.get(&at.0);
        let bytes = source.and_then(|source| Some((source.document.as_ref()?, &source.variables)));
        let bytes = bytes.map_or(0, |(document, variables)| {
            let scope = Scope { sizes: self, variables, of_variables: RefCell::default() };
            let found = parts(&document.value, &at.1, variables);
            let bytes = found.into_iter().map(|part| match part {
                Part::Value(value) => scope.value(value),
                Part::Constant(constant) => of_constant(constant),
                Part::Elsewhere(next) => self.of_path(&next),
            });
            bytes.max().unwrap_or(0)
        });
        self.of_paths.borrow_mut().insert(at.clone(), bytes);
        bytes
    }

    /// Bytes of a value that uses variables. Values of replies count as empty.
    pub(super) fn of_value(&self, value: &Value, variables: &Variables) -> u64 {
        Scope { sizes: self, variables, of_variables: RefCell::default() }.value(value)
    }
}

/// Sizes of values that use the same variables.
struct Scope<'a> {
    sizes: &'a Sizes<'a>,
    variables: &'a Variables,
    of_variables: RefCell<HashMap<String, u64>>,
}

impl Scope<'_> {
    fn value(&self, value: &Value) -> u64 {
        match value {
            Value::Constant(constant) => of_constant(constant),
            Value::Document(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| element(name.len(), self.value(value)));
                fields.fold(5, u64::saturating_add)
            }
            Value::Array(values) => {
                let largest = self.largest(values);
                of_array(values.len() as u64, largest)
            }
            Value::Generated(generator) => self.generated(generator),
        }
    }

    fn largest(&self, values: &[Value]) -> u64 {
        values.iter().map(|value| self.value(value)).max().unwrap_or(0)
    }

    fn generated(&self, generator: &Generator) -> u64 {
        match generator {
            Generator::Number
            | Generator::Int { .. }
            | Generator::Double { .. }
            | Generator::Boolean { .. }
            | Generator::Date { .. }
            | Generator::Now
            | Generator::Series { .. } => 8,
            Generator::Decimal { .. } => 16,
            Generator::ObjectId => 12,
            Generator::Uuid => 5 + 16,
            Generator::Binary { bytes, .. } => 5 + u64::from(bytes.max),
            Generator::Text { length, alphabet, .. } => {
                let widest =
                    alphabet.iter().map(|character| character.len_utf8()).max().unwrap_or(0);
                of_text(u64::from(length.max), widest)
            }
            Generator::Mask(mask) => of_text(1, mask.len()),
            Generator::Words { count: Size { max, .. }, words, .. } => {
                of_text(u64::from(*max), longest(words) + 1)
            }
            Generator::Syllables { syllables, .. } => {
                // A digit in base n holds at least ⌊log₂ n⌋ of 64 bits.
                let digits = 64 / u64::from(syllables.len().max(2).ilog2()) + 1;
                of_text(digits.max(3), longest(syllables))
            }
            Generator::Choose { values, .. } => self.largest(values),
            Generator::Array { length, of, .. } => of_array(u64::from(length.max), self.value(of)),
            Generator::Maybe { of, .. } => self.value(of),
            Generator::From { collection, path, .. } => {
                self.sizes.of_path(&(collection.clone(), path.clone()))
            }
            Generator::New { collection } => self.sizes.of_path(&(collection.clone(), Vec::new())),
            Generator::Variable(name) => self.variable(name),
            Generator::Reply { .. } => 0,
            Generator::Compute { function, arguments } => self.computed(*function, arguments),
        }
    }

    fn variable(&self, name: &str) -> u64 {
        if let Some(bytes) = self.of_variables.borrow().get(name) {
            return *bytes;
        }
        self.of_variables.borrow_mut().insert(name.to_owned(), 0);
        let bytes = self.variables.get(name).map_or(0, |template| self.value(&template.value));
        self.of_variables.borrow_mut().insert(name.to_owned(), bytes);
        bytes
    }

    /// Bytes of a value as a part of a text.
    fn as_text(&self, value: &Value) -> u64 {
        let digits = match value {
            Value::Constant(Bson::String(_)) => 0,
            Value::Constant(Bson::Int32(_) | Bson::Int64(_)) => INTEGER_DIGITS,
            Value::Generated(generator) => match generator.as_ref() {
                Generator::Number | Generator::Int { .. } => INTEGER_DIGITS,
                _ => DOUBLE_DIGITS,
            },
            _ => DOUBLE_DIGITS,
        };
        self.value(value).max(digits)
    }

    fn computed(&self, function: Function, arguments: &[Value]) -> u64 {
        let largest = self.largest(arguments);
        match function {
            Function::Concat => {
                let parts = arguments.iter().map(|value| self.as_text(value));
                parts.fold(5, u64::saturating_add)
            }
            Function::Pad => {
                let width = match arguments.get(1) {
                    Some(Value::Constant(Bson::Int32(width))) => u64::try_from(*width).unwrap_or(0),
                    _ => u64::from(MAX_PAD_WIDTH),
                };
                let number = arguments.first().map_or(0, |value| self.as_text(value));
                width.max(number).saturating_add(5)
            }
            Function::Nth | Function::Middle | Function::Min | Function::Max => largest.max(8),
            Function::Length => 8,
            Function::Add
            | Function::Subtract
            | Function::Multiply
            | Function::Divide
            | Function::Modulo => 16,
        }
    }
}

/// Type, name with its end, and value.
fn element(name_bytes: usize, value_bytes: u64) -> u64 {
    (name_bytes as u64 + 2).saturating_add(value_bytes)
}

fn of_array(length: u64, element_bytes: u64) -> u64 {
    let digits = length.max(1).ilog10() as usize + 1;
    element(digits, element_bytes).saturating_mul(length).saturating_add(5)
}

/// Length, text and its end.
fn of_text(parts: u64, part_bytes: usize) -> u64 {
    parts.saturating_mul(part_bytes as u64).saturating_add(5)
}

fn longest(texts: &[String]) -> usize {
    texts.iter().map(String::len).max().unwrap_or(0)
}

/// Bytes of a constant, by <https://bsonspec.org/spec.html>.
fn of_constant(constant: &Bson) -> u64 {
    match constant {
        Bson::Document(document) => document
            .iter()
            .fold(5, |sum, (name, value)| sum + element(name.len(), of_constant(value))),
        Bson::Array(items) => {
            of_array(items.len() as u64, items.iter().map(of_constant).max().unwrap_or(0))
        }
        Bson::String(text) | Bson::Symbol(text) | Bson::JavaScriptCode(text) => {
            of_text(1, text.len())
        }
        Bson::Binary(binary) => binary.bytes.len() as u64 + 9,
        Bson::RegularExpression(regex) => {
            (regex.pattern.as_str().len() + regex.options.as_str().len() + 2) as u64
        }
        Bson::JavaScriptCodeWithScope(code) => {
            of_text(1, code.code.len()) + of_constant(&Bson::Document(code.scope.clone())) + 4
        }
        Bson::Null | Bson::Undefined | Bson::MinKey | Bson::MaxKey => 0,
        Bson::Boolean(_) => 1,
        Bson::Int32(_) => 4,
        Bson::Double(_) | Bson::Int64(_) | Bson::DateTime(_) | Bson::Timestamp(_) => 8,
        Bson::ObjectId(_) => 12,
        Bson::Decimal128(_) => 16,
        // The name of a collection has at most 255 bytes.
        Bson::DbPointer(_) => 5 + 255 + 12,
    }
}
