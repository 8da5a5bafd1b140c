//! Compiles the generators.

use super::{Compiler, Spot};
use crate::program::Owner;
use crate::program::array::Array;
use crate::program::error::ProgramError;
use crate::program::function::arity;
use crate::program::law::{IntegerLaw, Reason, Sampler, alias_table};
use crate::program::node::{Choice, Node, Presence};
use crate::program::scalar::{IntegerForm, Scalar, Series};
use crate::program::text::{Binary, Mask, Text, Words};
use bson::Bson;
use dyno_plan::workload::template::{self, Function, Generator, Law, Size, Value};

impl<'a> Compiler<'a> {
    pub(super) fn generator(
        &mut self,
        generator: &'a Generator,
        spot: &Spot,
    ) -> Result<Node, ProgramError> {
        let stream = spot.stream;
        let scalar = |scalar| Node::Scalar { stream, scalar };
        let integer = |law, min, max, form| {
            let law = integer_law(law, min, max, spot)?;
            Ok(scalar(Scalar::Integer { law, form }))
        };
        Ok(match generator {
            Generator::Number => Node::Number,
            Generator::Int { min, max, law } => {
                integer(law, *min, *max, IntegerForm::between(*min, *max))?
            }
            Generator::Decimal { min, max, digits, law } => {
                integer(law, *min, *max, IntegerForm::Decimal(*digits))?
            }
            Generator::Date { from_ms, to_ms, law } => {
                integer(law, *from_ms, to_ms.saturating_sub(1), IntegerForm::Date)?
            }
            Generator::Double { min, max, law } => scalar(double(*min, *max, law, spot)?),
            Generator::Boolean { probability } => {
                scalar(Scalar::Boolean { probability: *probability })
            }
            Generator::Now => self.now(spot)?,
            Generator::Series { start_ms, step_ms, jitter_ms, at } => {
                let (start_ms, step_ms) = (*start_ms, *step_ms);
                let jitter_ms = jitter_ms.unsigned_abs();
                let series = Series { stream, start_ms, step_ms, jitter_ms };
                let at = at.as_ref().map(|at| self.value(at, &spot.part("at"))).transpose()?;
                Node::Series { series, at: at.map(Box::new) }
            }
            Generator::ObjectId => scalar(Scalar::ObjectId),
            Generator::Uuid => scalar(Scalar::Uuid),
            Generator::Binary { bytes, compressible } => {
                let (length, compressible) = (size_law(bytes, spot)?, *compressible);
                scalar(Scalar::Binary(Binary { length, compressible }))
            }
            Generator::Text { length, alphabet, compressible } => {
                let text = Text::new(size_law(length, spot)?, alphabet, *compressible);
                scalar(Scalar::Text(text))
            }
            Generator::Mask(mask) => scalar(Scalar::Mask(Mask::new(mask))),
            Generator::Words { count, words, law } => {
                let (count, place) = (size_law(count, spot)?, place_law(law, words.len(), spot)?);
                let words = boxed(words);
                scalar(Scalar::Words(Box::new(Words { count, words, place })))
            }
            Generator::Syllables { number, syllables } => {
                if syllables.len() < 2 {
                    return Err(ProgramError::EmptyRange { at: spot.at.clone() });
                }
                let number = Box::new(self.value(number, &spot.part("number"))?);
                Node::Syllables { number, syllables: boxed(syllables) }
            }
            Generator::Choose { values, choice } => self.choose(values, choice, spot)?,
            Generator::Array { length, of, distinct } => {
                let (length, distinct) = (size_law(length, spot)?, *distinct);
                let of = Box::new(self.value(of, &spot.part("of"))?);
                Node::Array { array: Array { stream, length, distinct }, of }
            }
            Generator::Maybe { probability, of } => {
                let presence = Presence { stream, probability: *probability };
                Node::Maybe { presence, of: Box::new(self.value(of, &spot.part("of"))?) }
            }
            Generator::From { collection, path, law, at } => {
                self.from(collection, path, law.as_ref(), at.as_ref(), spot)?
            }
            Generator::New { collection } => self.new_document(collection, spot)?,
            Generator::Variable(name) => Node::Variable(self.variable(name, spot)?),
            Generator::Reply { step, path } => {
                self.require_operation(spot)?;
                Node::Reply { step: *step, path: path.as_slice().into() }
            }
            Generator::Compute { function, arguments } => {
                self.compute(*function, arguments, spot)?
            }
        })
    }

    /// The time that the plan pins is a constant. The clock differs whenever a document is computed again.
    fn now(&self, spot: &Spot) -> Result<Node, ProgramError> {
        match self.templates.now_ms {
            Some(now_ms) => {
                let constant = Bson::DateTime(bson::DateTime::from_millis(now_ms));
                super::constant_node(&constant, spot)
            }
            None if self.targets.is_empty() => Ok(Node::Now),
            None => Err(ProgramError::NotRepeatable { at: spot.at.clone() }),
        }
    }

    fn choose(
        &mut self,
        values: &'a [Value],
        choice: &template::Choice,
        spot: &Spot,
    ) -> Result<Node, ProgramError> {
        let choice = match choice {
            template::Choice::Law(law) => Choice::Law(place_law(law, values.len(), spot)?),
            template::Choice::Weights(weights) if weights.len() == values.len() => {
                Choice::Weights(alias_table(weights).map_err(law_error(spot))?)
            }
            template::Choice::Weights(_) => {
                return Err(law_error(spot)("values and weights differ in number"));
            }
        };
        let nodes = values.iter().enumerate();
        let nodes: Vec<Node> = nodes
            .map(|(index, value)| self.value(value, &spot.part(&index.to_string())))
            .collect::<Result<_, _>>()?;
        Ok(Node::Choose { stream: spot.stream, choice, nodes: nodes.into() })
    }

    fn new_document(&mut self, collection: &str, spot: &Spot) -> Result<Node, ProgramError> {
        self.require_operation(spot)?;
        let collection = self.collection(collection, spot)?;
        let mut compiler = Compiler::new(Owner::Collection(collection), self.templates);
        let document = &self.templates.collections[collection].document;
        let document = Box::new(compiler.value(document, &compiler.root())?);
        Ok(Node::New { collection, variables: compiler.into_variables(), document })
    }

    fn compute(
        &mut self,
        function: Function,
        arguments: &'a [Value],
        spot: &Spot,
    ) -> Result<Node, ProgramError> {
        let (allowed, expected) = arity(function);
        if !allowed.contains(&arguments.len()) {
            let (at, found) = (spot.at.clone(), arguments.len());
            return Err(ProgramError::ArgumentCount { at, expected, found });
        }
        let nodes = arguments.iter().enumerate();
        let nodes: Vec<Node> = nodes
            .map(|(index, value)| self.value(value, &spot.part(&index.to_string())))
            .collect::<Result<_, _>>()?;
        if arguments.iter().any(|argument| self.is_decimal(argument)) {
            return Err(ProgramError::DecimalArgument { at: spot.at.clone() });
        }
        Ok(Node::Compute { function, arguments: nodes.into() })
    }

    /// Whether the value is known to be Decimal128. Its variables are compiled, so they do not contain themselves.
    fn is_decimal(&self, value: &Value) -> bool {
        match value {
            Value::Constant(Bson::Decimal128(_)) => true,
            Value::Generated(generator) => match &**generator {
                Generator::Decimal { .. } => true,
                Generator::Variable(name) => {
                    let mut declared = self.declared.iter();
                    declared.any(|(declared, value)| declared == name && self.is_decimal(value))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Refuses values that documents of a collection cannot have.
    fn require_operation(&self, spot: &Spot) -> Result<(), ProgramError> {
        match self.owner {
            Owner::Step { .. } => Ok(()),
            Owner::Collection(_) => Err(ProgramError::NotRepeatable { at: spot.at.clone() }),
        }
    }

    /// The index of a collection.
    pub(super) fn collection(&self, name: &str, spot: &Spot) -> Result<usize, ProgramError> {
        let mut collections = self.templates.collections.iter();
        collections.position(|collection| collection.name == name).ok_or_else(|| {
            ProgramError::UnknownCollection { at: spot.at.clone(), collection: name.to_owned() }
        })
    }
}

fn boxed(texts: &[String]) -> Box<[Box<str>]> {
    texts.iter().map(|text| text.as_str().into()).collect()
}

pub(super) fn law_error(spot: &Spot) -> impl Fn(Reason) -> ProgramError {
    let at = spot.at.clone();
    move |reason| ProgramError::Law { at: at.clone(), reason }
}

fn integer_law(law: &Law, min: i64, max: i64, spot: &Spot) -> Result<IntegerLaw, ProgramError> {
    if min > max {
        return Err(ProgramError::EmptyRange { at: spot.at.clone() });
    }
    IntegerLaw::new(law, min, max).map_err(law_error(spot))
}

pub(super) fn size_law(size: &Size, spot: &Spot) -> Result<IntegerLaw, ProgramError> {
    integer_law(&size.law, size.min.into(), size.max.into(), spot)
}

/// A law over the places of a list.
fn place_law(law: &Law, length: usize, spot: &Spot) -> Result<IntegerLaw, ProgramError> {
    integer_law(law, 0, length as i64 - 1, spot)
}

fn double(min: f64, max: f64, law: &Law, spot: &Spot) -> Result<Scalar, ProgramError> {
    if !(min <= max && min.is_finite() && max.is_finite()) {
        return Err(ProgramError::EmptyRange { at: spot.at.clone() });
    }
    let law = Sampler::new(law, 0).map_err(law_error(spot))?;
    if !law.is_continuous() {
        return Err(ProgramError::IntegersOnly { at: spot.at.clone() });
    }
    Ok(Scalar::Double { min, max, law })
}
