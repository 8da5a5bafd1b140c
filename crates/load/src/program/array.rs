//! `%array`: elements that are numbered when they are written.

use super::context::{Context, Span};
use super::law::{IntegerLaw, MAX_REDRAWS};
use super::raw::ArrayWriter;
use super::stream::{Place, Stream};

/// Length of an array, and whether its elements must differ.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) stream: Stream,
    pub(super) length: IntegerLaw,
    pub(super) distinct: bool,
}

impl Array {
    /// Number of elements, before any turns out to be absent.
    #[inline]
    pub(super) fn length(&self, place: Place) -> u32 {
        self.length.draw(place.number, &mut self.stream.at(place)) as u32
    }

    /// Appends the array; returns its type. `element` appends the element at a place, and returns `None`, with nothing appended, if
    /// it is absent.
    pub(super) fn write(
        &self,
        place: Place,
        context: &mut Context,
        out: &mut Vec<u8>,
        mut element: impl FnMut(Place, &mut Context, &mut Vec<u8>) -> Option<u8>,
    ) -> u8 {
        let mut array = ArrayWriter::begin(out);
        // Arrays inside of the elements append their spans to this array's spans.
        let first = context.spans.len();
        for index in 0..self.length(place) {
            array.element(out, |out| {
                if self.distinct {
                    let places = (0..=MAX_REDRAWS).map(|attempt| place.element(index, attempt));
                    write_distinct(places, first, context, out, &mut element)
                } else {
                    element(place.element(index, 0), context, out)
                }
            });
        }
        context.spans.truncate(first);
        array.end(out)
    }
}

/// Appends an element that has another type or other bytes than the elements before it, whose spans begin at `first`. Draws it at
/// one place after the other, and leaves it out if no place yields another one.
fn write_distinct(
    places: impl Iterator<Item = Place>,
    first: usize,
    context: &mut Context,
    out: &mut Vec<u8>,
    element: &mut impl FnMut(Place, &mut Context, &mut Vec<u8>) -> Option<u8>,
) -> Option<u8> {
    let start = out.len();
    for place in places {
        let kind = element(place, context, out)?;
        let mut earlier = context.spans[first..].iter();
        if earlier.all(|span| !span.equals(kind, &out[start..], out)) {
            context.spans.push(Span { kind, start, end: out.len() });
            return Some(kind);
        }
        out.truncate(start);
    }
    None
}
