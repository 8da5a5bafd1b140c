//! Compiled values, and how they are written.

use super::array::Array;
use super::context::{Context, VariableState};
use super::from::From;
use super::function;
use super::law::IntegerLaw;
use super::raw::{self, ArrayWriter, Number, RawValue};
use super::scalar::{Scalar, Series};
use super::stream::{Place, Stream};
use super::text;
use dyno_plan::workload::template::Function;
use dyno_wire::bson::{begin_document, kind, patch_length};
use rand_distr::Distribution;
use rand_distr::weighted::WeightedAliasIndex;

/// The variables of an operation or document, by their place in `let`; `None` if nothing uses them.
pub(super) type Variables = Box<[Option<Node>]>;

/// Variables and place of a value.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) variables: &'a [Option<Node>],
    pub(super) place: Place,
}

impl Scope<'_> {
    /// `%number`.
    fn number(self) -> Number {
        Number::Int64(self.place.number as i64)
    }
}

/// A compiled value.
#[derive(Debug)]
pub(super) enum Node {
    Constant {
        kind: u8,
        bytes: Box<[u8]>,
    },
    Scalar {
        stream: Stream,
        scalar: Scalar,
    },
    Record(Record),
    /// An array with elements that may be absent.
    List(Box<[Node]>),
    Number,
    Now,
    /// `at` is the number of steps; if absent, the document's number.
    Series {
        series: Series,
        at: Option<Box<Node>>,
    },
    Syllables {
        number: Box<Node>,
        syllables: Box<[Box<str>]>,
    },
    Choose {
        stream: Stream,
        choice: Choice,
        nodes: Box<[Node]>,
    },
    Array {
        array: Array,
        of: Box<Node>,
    },
    Maybe {
        presence: Presence,
        of: Box<Node>,
    },
    From(Box<From>),
    New {
        collection: usize,
        variables: Variables,
        document: Box<Node>,
    },
    Variable(usize),
    Reply {
        step: usize,
        path: Box<[String]>,
    },
    Compute {
        function: Function,
        arguments: Box<[Node]>,
    },
}

/// A document, or an array without absent elements. Constant elements are copied together with the header of the generated
/// element behind them.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) kind: u8,
    pub(super) parts: Box<[Part]>,
    /// Constant elements behind the last generated one, and the final zero.
    pub(super) tail: Box<[u8]>,
}

/// Constant elements and a generated one.
#[derive(Debug)]
pub(super) struct Part {
    /// Ends with the header of the generated element. Its type is filled in later.
    pub(super) constant: Box<[u8]>,
    /// Length of that header.
    pub(super) header_bytes: usize,
    pub(super) value: Node,
}

/// How `%choose` draws a place.
#[derive(Debug)]
pub(super) enum Choice {
    Weights(WeightedAliasIndex<f64>),
    Law(IntegerLaw),
}

impl Choice {
    #[inline]
    fn draw(&self, stream: Stream, place: Place) -> usize {
        let mut draws = stream.at(place);
        match self {
            Choice::Weights(places) => places.sample(&mut draws),
            Choice::Law(law) => law.draw(place.number, &mut draws) as usize,
        }
    }
}

/// Whether a value of `%maybe` is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presence {
    pub(super) stream: Stream,
    pub(super) probability: f64,
}

impl Presence {
    #[inline]
    pub(super) fn holds(self, place: Place) -> bool {
        self.stream.at(place).happens(self.probability)
    }
}

impl Node {
    /// Appends the bytes of the value and returns its type; `None`, with nothing appended, if the value is absent.
    #[inline]
    pub(super) fn write(
        &self,
        scope: Scope<'_>,
        context: &mut Context,
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        match self {
            Node::Constant { kind, bytes } => {
                out.extend_from_slice(bytes);
                Some(*kind)
            }
            Node::Scalar { stream, scalar } => Some(scalar.write(*stream, scope.place, out)),
            Node::Record(record) => Some(record.write(scope, context, out)),
            Node::Number => Some(scope.number().write(out)),
            Node::Now => Some(Number::Date(context.now_ms()).write(out)),
            Node::List(nodes) => {
                let mut array = ArrayWriter::begin(out);
                for node in nodes {
                    array.element(out, |out| node.write(scope, context, out));
                }
                Some(array.end(out))
            }
            Node::Array { array, of } => {
                Some(array.write(scope.place, context, out, |place, context, out| {
                    of.write(Scope { place, ..scope }, context, out)
                }))
            }
            Node::Choose { stream, choice, nodes } => {
                nodes[choice.draw(*stream, scope.place)].write(scope, context, out)
            }
            Node::Maybe { presence, of } => {
                presence.holds(scope.place).then(|| of.write(scope, context, out))?
            }
            Node::New { collection, variables, document } => {
                let Some(number) = context.new_document(*collection) else {
                    context.awaits_document = true;
                    return Some(kind::NULL);
                };
                let scope = Scope { variables, place: Place::new(number) };
                context.in_frame(|context| document.write(scope, context, out))
            }
            Node::Variable(index) => write_variable(*index, scope, context, out),
            Node::From(from) => {
                let written = from.write(scope, context, out);
                or_null(written, &mut context.misses.from)
            }
            Node::Reply { step, path } => {
                let reply = (kind::DOCUMENT, context.reply(*step));
                let written = raw::write_all_at(reply, path, out);
                or_null(written, &mut context.misses.reply)
            }
            Node::Series { series, at } => {
                let steps = match at {
                    None => Some(scope.place.number as i64),
                    Some(at) => at.integer(scope, context),
                };
                let time = steps.map(|steps| Number::Date(series.time_ms(steps, scope.place)));
                let written = time.map(|time| time.write(out));
                or_null(written, &mut context.misses.function)
            }
            Node::Syllables { number, syllables } => {
                let written = number.integer(scope, context).map(|number| {
                    let number = number.unsigned_abs();
                    raw::write_text(out, |out| text::write_syllables(number, syllables, out))
                });
                or_null(written, &mut context.misses.function)
            }
            Node::Compute { function, arguments } => {
                let start = out.len();
                let written = write_result(*function, arguments, scope, context, out);
                if written.is_none() {
                    out.truncate(start);
                }
                or_null(written, &mut context.misses.function)
            }
        }
    }

    /// The value as a number; `None` if it has another type.
    fn number(&self, scope: Scope<'_>, context: &mut Context) -> Option<Number> {
        match self {
            Node::Number => Some(scope.number()),
            Node::Constant { kind, bytes } => Number::read((*kind, bytes)),
            Node::Compute { function, arguments } if function::is_arithmetic(*function) => {
                reduce(*function, arguments, scope, context)
            }
            _ => self.with_value(scope, context, Number::read),
        }
    }

    /// The value as an integer; `None` if it is not a number.
    pub(super) fn integer(&self, scope: Scope<'_>, context: &mut Context) -> Option<i64> {
        self.number(scope, context).map(Number::integer)
    }

    /// Computes the value into a buffer for `read`; `None` if the value is absent.
    pub(super) fn with_value<T>(
        &self,
        scope: Scope<'_>,
        context: &mut Context,
        read: impl FnOnce(RawValue<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut buffer = context.take_buffer();
        let kind = self.write(scope, context, &mut buffer);
        let result = kind.and_then(|kind| read((kind, &buffer)));
        context.give_back(buffer);
        result
    }
}

impl Record {
    #[inline]
    fn write(&self, scope: Scope<'_>, context: &mut Context, out: &mut Vec<u8>) -> u8 {
        let start = begin_document(out);
        for part in &self.parts {
            out.extend_from_slice(&part.constant);
            let header = out.len() - part.header_bytes;
            match part.value.write(scope, context, out) {
                Some(kind) => out[header] = kind,
                None => out.truncate(header),
            }
        }
        out.extend_from_slice(&self.tail);
        patch_length(out, start);
        self.kind
    }
}

/// Replaces a value that could not be computed by null, and counts it.
#[inline]
fn or_null(written: Option<u8>, misses: &mut u64) -> Option<u8> {
    written.or_else(|| {
        *misses += 1;
        Some(kind::NULL)
    })
}

fn write_variable(
    index: usize,
    scope: Scope<'_>,
    context: &mut Context,
    out: &mut Vec<u8>,
) -> Option<u8> {
    if context.variable(index).state == VariableState::Open {
        let mut bytes = std::mem::take(&mut context.variable(index).bytes);
        bytes.clear();
        let node = scope.variables[index].as_ref().expect("a used variable is compiled");
        // The same value wherever it is used first: outside of all arrays.
        let scope = Scope { place: Place::new(scope.place.number), ..scope };
        let kind = node.write(scope, context, &mut bytes);
        let state = kind.map_or(VariableState::Absent, VariableState::OfKind);
        context.set_variable(index, state, bytes);
    }
    let variable = context.variable(index);
    match variable.state {
        VariableState::OfKind(kind) => {
            out.extend_from_slice(&variable.bytes);
            Some(kind)
        }
        VariableState::Open | VariableState::Absent => None,
    }
}

/// The result of an arithmetic function.
fn reduce(
    function: Function,
    arguments: &[Node],
    scope: Scope<'_>,
    context: &mut Context,
) -> Option<Number> {
    function::reduce(function, arguments.iter().map(|argument| argument.number(scope, context)))
}

/// Appends the result of a function and returns its type. `None`, perhaps with a part appended, if it has none.
fn write_result(
    function: Function,
    arguments: &[Node],
    scope: Scope<'_>,
    context: &mut Context,
    out: &mut Vec<u8>,
) -> Option<u8> {
    if function::is_arithmetic(function) {
        return Some(reduce(function, arguments, scope, context)?.write(out));
    }
    let (first, rest) = arguments.split_first()?;
    match function {
        Function::Concat => {
            let start = raw::begin_text(out);
            for text in arguments {
                text.with_value(scope, context, |value| function::write_as_text(value, out))?;
            }
            Some(raw::end_text(out, start))
        }
        Function::Pad => {
            let width = rest.first()?.integer(scope, context)?;
            let start = raw::begin_text(out);
            first.with_value(scope, context, |value| function::pad(value, width, out))?;
            Some(raw::end_text(out, start))
        }
        Function::Nth => {
            let index = usize::try_from(rest.first()?.integer(scope, context)?).ok()?;
            first.with_value(scope, context, |value| Some(raw::copy(raw::nth(value, index)?, out)))
        }
        Function::Middle => {
            first.with_value(scope, context, |value| Some(raw::copy(function::middle(value)?, out)))
        }
        _ => first.with_value(scope, context, |value| Some(function::length(value)?.write(out))),
    }
}
