//! `%from`: a value of an existing document, computed again instead of remembered.

use super::array::Array;
use super::context::Context;
use super::law::{DocumentLaw, MAX_REDRAWS};
use super::node::{Node, Presence, Scope, Variables};
use super::raw;
use super::stream::{Draws, Place, Stream};
use rand::RngExt;

/// The value at a path of an existing document.
#[derive(Debug)]
pub(super) struct From {
    /// Randomness of the choice. The values have the streams of their collection.
    pub(super) stream: Stream,
    pub(super) existing: Existing,
    pub(super) choice: Choice,
    /// Variables of the collection.
    pub(super) variables: Variables,
    pub(super) reach: Reach,
}

/// Number of documents that `%from` chooses from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Existing {
    /// The loaded ones: a document must be the same whenever it is computed.
    Loaded(u64),
    /// Those of the collection that exist when the operation is made.
    Now(usize),
}

/// How the document is chosen.
#[derive(Debug)]
pub(super) enum Choice {
    Law(DocumentLaw),
    /// By its number.
    At(Node),
}

/// How the value at the path is computed, without the rest of its document.
#[derive(Debug)]
pub(super) enum Reach {
    Value(Node),
    /// An element of a generated array: the one at an index, otherwise any.
    Element {
        array: Array,
        index: Option<u32>,
        rest: Box<Reach>,
    },
    /// Any element of a fixed array.
    OneOf(Box<[Reach]>),
    Present {
        presence: Presence,
        rest: Box<Reach>,
    },
    /// The rest of the path leads through a value that is known only when it is generated.
    Lookup {
        value: Node,
        path: Box<[String]>,
    },
}

impl From {
    /// Appends the value and returns its type; `None`, with nothing appended, if no document has it. Documents without the value
    /// are replaced by others that the law draws.
    pub(super) fn write(
        &self,
        scope: Scope<'_>,
        context: &mut Context,
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        let count = match self.existing {
            Existing::Loaded(count) => count,
            Existing::Now(collection) => context.documents.existing(collection),
        };
        let last = count.checked_sub(1)?;
        let mut draws = self.stream.at(scope.place);
        let law = match &self.choice {
            Choice::Law(law) => law,
            Choice::At(number) => {
                let number = u64::try_from(number.integer(scope, context)?).ok()?;
                return (number <= last).then(|| self.value(number, &mut draws, context, out))?;
            }
        };
        (0..=u64::from(MAX_REDRAWS)).find_map(|attempt| {
            // A sequential law continues with the next document.
            let order = scope.place.number.wrapping_add(attempt);
            let number = law.draw(last, order, &mut draws);
            self.value(number, &mut draws, context, out)
        })
    }

    /// The value of document `number`.
    #[inline]
    fn value(
        &self,
        number: u64,
        draws: &mut Draws,
        context: &mut Context,
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        let scope = Scope { variables: &self.variables, place: Place::new(number) };
        if self.variables.is_empty() {
            self.reach.write(scope, draws, context, out)
        } else {
            context.in_frame(|context| self.reach.write(scope, draws, context, out))
        }
    }
}

impl Reach {
    /// Appends the value; `draws` chooses elements of arrays.
    #[inline]
    fn write(
        &self,
        scope: Scope<'_>,
        draws: &mut Draws,
        context: &mut Context,
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        match self {
            Reach::Value(node) => node.write(scope, context, out),
            Reach::Element { array, index, rest } => {
                let length = array.length(scope.place);
                let index = match index {
                    Some(index) if *index < length => *index,
                    None if length > 0 => draws.random_range(0..length),
                    _ => return None,
                };
                let scope = Scope { place: scope.place.element(index, 0), ..scope };
                rest.write(scope, draws, context, out)
            }
            Reach::OneOf(elements) => {
                let last = elements.len().checked_sub(1)?;
                elements[draws.random_range(0..=last)].write(scope, draws, context, out)
            }
            Reach::Present { presence, rest } => {
                presence.holds(scope.place).then(|| rest.write(scope, draws, context, out))?
            }
            Reach::Lookup { value, path } => value.with_value(scope, context, |value| {
                let mut choose = |count| draws.random_range(0..count);
                Some(raw::copy(raw::one_at(value, path, &mut choose)?, out))
            }),
        }
    }
}
