//! Compiles `%from`: follows its path through the template of the collection.

use super::generator::{law_error, size_law};
use super::{Compiler, Spot, may_be_absent};
use crate::program::Owner;
use crate::program::array::Array;
use crate::program::error::ProgramError;
use crate::program::from::{Choice, Existing, From, Reach};
use crate::program::law::DocumentLaw;
use crate::program::node::{Node, Presence};
use bson::Bson;
use dyno_plan::workload::template::{Generator, Law, Value};

impl<'a> Compiler<'a> {
    pub(super) fn from(
        &mut self,
        collection: &str,
        path: &'a [String],
        law: Option<&Law>,
        at: Option<&'a Value>,
        spot: &Spot,
    ) -> Result<Node, ProgramError> {
        let collection = self.collection(collection, spot)?;
        let target = (collection, path);
        if self.targets.contains(&target) {
            return Err(ProgramError::Recursion { at: spot.at.clone() });
        }
        let mut compiler = Compiler::new(Owner::Collection(collection), self.templates);
        compiler.targets.clone_from(&self.targets);
        compiler.targets.push(target);
        let (root, described) = (compiler.root(), &self.templates.collections[collection]);
        let reach = compiler.reach(&described.document, path, &root)?;
        let existing = match self.owner {
            Owner::Collection(_) => Existing::Loaded(described.records),
            Owner::Step { .. } => Existing::Now(collection),
        };
        let choice = match at {
            Some(number) => Choice::At(self.value(number, &spot.part("at"))?),
            None => {
                let law = law.unwrap_or(self.templates.keys);
                let key = root.part("order").stream.key();
                let law = DocumentLaw::new(law, described.records, key);
                Choice::Law(law.map_err(law_error(spot))?)
            }
        };
        let (stream, variables) = (spot.stream, compiler.into_variables());
        Ok(Node::From(Box::new(From { stream, existing, choice, variables, reach })))
    }

    /// The part of a value at a path. It has the streams of the document, and so the same bytes.
    fn reach(
        &mut self,
        value: &'a Value,
        path: &'a [String],
        spot: &Spot,
    ) -> Result<Reach, ProgramError> {
        match value {
            Value::Document(fields) => {
                let Some((name, rest)) = path.split_first() else {
                    return Ok(Reach::Value(self.value(value, spot)?));
                };
                let field = fields.iter().find(|(field, _)| field == name);
                let (_, value) = field.ok_or_else(|| self.unknown_path())?;
                self.reach(value, rest, &spot.field(name))
            }
            Value::Array(elements) if !elements.iter().any(may_be_absent) => {
                self.reach_element(elements, path, spot)
            }
            Value::Generated(generator) => self.reach_generated(value, generator, path, spot),
            Value::Constant(constant) if !exists(constant, path) => Err(self.unknown_path()),
            Value::Constant(_) | Value::Array(_) => self.lookup(value, path, spot),
        }
    }

    fn reach_element(
        &mut self,
        elements: &'a [Value],
        path: &'a [String],
        spot: &Spot,
    ) -> Result<Reach, ProgramError> {
        let (index, rest) = split_index(path);
        let element = |compiler: &mut Self, index: usize| {
            let value = elements.get(index).ok_or_else(|| compiler.unknown_path())?;
            compiler.reach_in_element(value, rest, &spot.field(&index.to_string()))
        };
        if let Some(index) = index {
            return element(self, index as usize);
        }
        let reaches: Vec<Reach> =
            (0..elements.len()).map(|index| element(self, index)).collect::<Result<_, _>>()?;
        Ok(Reach::OneOf(reaches.into()))
    }

    fn reach_generated(
        &mut self,
        value: &'a Value,
        generator: &'a Generator,
        path: &'a [String],
        spot: &Spot,
    ) -> Result<Reach, ProgramError> {
        match generator {
            Generator::Array { length, of, distinct: false } if !may_be_absent(of) => {
                let (stream, length) = (spot.stream, size_law(length, spot)?);
                let array = Array { stream, length, distinct: false };
                let (index, rest) = split_index(path);
                let rest = Box::new(self.reach_in_element(of, rest, &spot.part("of"))?);
                Ok(Reach::Element { array, index, rest })
            }
            Generator::Maybe { probability, of } => {
                let rest = Box::new(self.reach(of, path, &spot.part("of"))?);
                let presence = Presence { stream: spot.stream, probability: *probability };
                Ok(Reach::Present { presence, rest })
            }
            Generator::Array { .. }
            | Generator::Choose { .. }
            | Generator::From { .. }
            | Generator::Variable(_)
            | Generator::Compute { .. } => self.lookup(value, path, spot),
            _ if path.is_empty() => Ok(Reach::Value(self.value(value, spot)?)),
            _ => Err(self.unknown_path()),
        }
    }

    /// As [`reach`](Self::reach), for an element: an array inside of an array is a value of its own at the end of the path.
    fn reach_in_element(
        &mut self,
        value: &'a Value,
        path: &'a [String],
        spot: &Spot,
    ) -> Result<Reach, ProgramError> {
        if path.is_empty() {
            Ok(Reach::Value(self.value(value, spot)?))
        } else {
            self.reach(value, path, spot)
        }
    }

    fn lookup(
        &mut self,
        value: &'a Value,
        path: &'a [String],
        spot: &Spot,
    ) -> Result<Reach, ProgramError> {
        Ok(Reach::Lookup { value: self.value(value, spot)?, path: path.into() })
    }

    /// The path of the innermost `%from` does not exist.
    fn unknown_path(&self) -> ProgramError {
        let path = self.targets.last().map_or(String::new(), |(_, path)| path.join("."));
        ProgramError::UnknownPath { collection: self.owner_name(), path }
    }
}

/// Whether a path leads to a value, through any element of arrays without an index.
fn exists(value: &Bson, path: &[String]) -> bool {
    match (value, path.split_first()) {
        (Bson::Array(elements), _) => match split_index(path) {
            (Some(index), rest) => {
                elements.get(index as usize).is_some_and(|element| exists(element, rest))
            }
            (None, path) => elements.iter().any(|element| exists(element, path)),
        },
        (_, None) => true,
        (Bson::Document(document), Some((name, rest))) => {
            document.get(name).is_some_and(|value| exists(value, rest))
        }
        _ => false,
    }
}

/// Splits an index at the front of a path.
fn split_index(path: &[String]) -> (Option<u32>, &[String]) {
    match path.split_first() {
        Some((name, rest)) if name.parse::<u32>().is_ok() => (name.parse().ok(), rest),
        _ => (None, path),
    }
}
