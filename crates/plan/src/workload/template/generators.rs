//! The table of generators: the only list from which templates are read, names are suggested and the reference is made.

use super::arguments as read;
use super::call::Call;
use super::error::Mistake;
use super::model::Generator;

/// A generator as people write it.
pub struct GeneratorEntry {
    /// Without the `%`.
    pub name: &'static str,
    pub form: Form,
    /// Options behind the first key.
    pub options: &'static [&'static str],
    /// One sentence.
    pub meaning: &'static str,
    pub example: &'static str,
    /// Reads the arguments.
    pub(super) read: fn(&mut Call<'_>) -> Result<Generator, Mistake>,
}

/// How a generator is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a string: `"%now"`.
    Word,
    /// As a document: `{%int: [1, 5]}`.
    Document,
    /// As a document, or as a string with its argument behind a space: `"%new orders"`.
    Both,
}

/// The generator with a name.
pub(super) fn find(name: &str) -> Option<&'static GeneratorEntry> {
    GENERATORS.iter().find(|generator| generator.name == name)
}

macro_rules! generators {
    ($($name:literal $form:ident [$($option:literal),*] $read:path, $example:literal, $meaning:literal;)*) => {
        /// All generators, in the order of the reference.
        pub const GENERATORS: &[GeneratorEntry] = &[$(GeneratorEntry {
            name: $name,
            form: Form::$form,
            options: &[$($option),*],
            meaning: $meaning,
            example: $example,
            read: $read,
        }),*];
    };
}

generators! {
    "number" Word [] read::number, r#""%number""#,
        "Number of the document in its collection, or of the operation, from 0, as a 64-bit integer.";
    "int" Document ["law"] read::int, "{%int: [1, 100], law: {zipf: 0.99}}",
        "Integer between two ends, both included. It has 32 bits if both ends fit, otherwise 64.";
    "double" Document ["law"] read::double_between, "{%double: [0, 1]}",
        "Double between two ends.";
    "decimal" Document ["law"] read::decimal, r#"{%decimal: ["0.01", "99.99"]}"#,
        "Decimal128 between two ends, both included, with the digits of the more precise end.";
    "boolean" Document [] read::boolean, "{%boolean: 0.3}",
        "`true` with a probability, otherwise `false`.";
    "date" Document ["law"] read::date, r#"{%date: ["2026-01-01", "2026-11-01"]}"#,
        "Date from the first end, and before the second, in milliseconds.";
    "now" Word [] read::now, r#""%now""#,
        "Time at which the value is generated, or the time that the plan pins.";
    "series" Document ["at"] read::series,
        r#"{%series: {start: "2026-01-01", step: "10s", jitter: "1s"}}"#,
        "Clock of a time series: `start` + `step` × number, moved by at most `jitter` in both directions. `at` replaces the number.";
    "objectid" Word [] read::object_id, r#""%objectid""#,
        "ObjectId.";
    "uuid" Word [] read::uuid, r#""%uuid""#,
        "UUID of version 4, as binary data of subtype 4.";
    "binary" Document ["law", "compressible"] read::binary, "{%binary: 100, compressible: 0.5}",
        "Binary data of a length in bytes. The share `compressible` of it can be compressed away.";
    "string" Document ["law", "alphabet", "compressible"] read::string, r#"{%string: [5, 12], alphabet: "abc"}"#,
        "String of a length in characters, of letters and digits unless `alphabet` names others. The share `compressible` of it can be compressed away.";
    "mask" Document [] read::mask, r####"{%mask: "###-@@"}"####,
        "String in which each `#` becomes a digit and each `@` a lower-case letter.";
    "words" Document ["of", "law"] read::words, r#"{%words: 3, of: ["red", "green", "blue"]}"#,
        "Words with spaces between them. `of` is a list, or a file with a word in each line; `law` chooses the words.";
    "syllables" Document ["of"] read::syllables, r#"{%syllables: "%number", of: ["BAR", "OUGHT", "ABLE"]}"#,
        "One syllable for each digit of a number, whose base is the number of syllables; at least three digits.";
    "choose" Document ["law", "weights"] read::choose, "{%choose: {open: 5, paid: 15, shipped: 80}}",
        "One of several strings by weight, or one of several values (`[1, 2, 3]`) by a law or by `weights`.";
    "array" Document ["of", "law", "distinct"] read::array, "{%array: [1, 8], of: {%int: [1, 100]}, distinct: true}",
        "Array of a length. Each element is generated from `of`; with `distinct`, no two are equal.";
    "maybe" Document ["of"] read::maybe, r#"{%maybe: 0.2, of: "%now"}"#,
        "The value `of` with a probability, otherwise the field is absent.";
    "from" Document ["law", "at"] read::from, r#"{%from: "orders.customer", at: 7}"#,
        "Value at a path of an existing document. `law` chooses the document, by default the plan's `keys`; `at` gives its number. Hot documents of `zipf`, `hotspot`, `exponential` and `geometric` are scattered over the collection.";
    "new" Both [] read::new, r#""%new orders""#,
        "Next new document of a collection.";
    "reply" Document [] read::reply, r#"{%reply: "0.cursor.firstBatch.0.total"}"#,
        "Value in the reply to an earlier step, by the step's number from 0 and the path in the reply.";
    "add" Document [] read::add, r#"{%add: ["%number", 1]}"#, "Sum.";
    "subtract" Document [] read::subtract, r#"{%subtract: ["%number", 1]}"#, "Difference of two numbers.";
    "multiply" Document [] read::multiply, r#"{%multiply: ["%number", 10]}"#, "Product.";
    "divide" Document [] read::divide, r#"{%divide: ["%number", 10]}"#,
        "Quotient of two numbers; integers are divided towards zero.";
    "modulo" Document [] read::modulo, r#"{%modulo: ["%number", 10]}"#, "Rest of a division.";
    "min" Document [] read::min, r#"{%min: ["%number", 100]}"#, "Smallest of several numbers.";
    "max" Document [] read::max, r#"{%max: ["%number", 100]}"#, "Greatest of several numbers.";
    "concat" Document [] read::concat, r#"{%concat: ["user", "%number"]}"#,
        "Strings joined to one; numbers become decimal digits.";
    "pad" Document [] read::pad, r#"{%pad: ["%number", 8]}"#,
        "Decimal digits of a number, with zeros on the left up to a width of at most 1024.";
    "nth" Document [] read::nth, r#"{%nth: [["a", "b", "c"], 1]}"#, "Element of an array, from 0.";
    "middle" Document [] read::middle, r#"{%middle: ["a", "b", "c"]}"#,
        "Element in the middle of an array: the one at half of the length, rounded up, from 1.";
    "length" Document [] read::length, r#"{%length: ["a", "b", "c"]}"#,
        "Number of elements of an array, or of characters of a string.";
}
