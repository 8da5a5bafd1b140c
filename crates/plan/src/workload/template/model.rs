//! Values of templates, and the generators and laws in them.

use bson::Bson;

/// Bytes of the largest document that the server accepts, which also limits strings, arrays and numbers of words.
pub(crate) const MAX_DOCUMENT_BYTES: u32 = 16 << 20;

/// Characters of the longest result of `%pad`, unless its number is longer.
pub const MAX_PAD_WIDTH: u32 = 1024;

/// Characters of `%string` without `alphabet`.
pub(super) const LETTERS_AND_DIGITS: &str =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A value of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Constant(Bson),
    Document(Vec<(String, Value)>),
    Array(Vec<Value>),
    Generated(Box<Generator>),
}

impl Value {
    /// A document; a constant if all fields are.
    pub fn document(fields: Vec<(String, Value)>) -> Self {
        if fields.iter().any(|(_, value)| !matches!(value, Value::Constant(_))) {
            return Value::Document(fields);
        }
        let constants =
            fields.into_iter().filter_map(|(key, value)| Some((key, value.into_constant()?)));
        Value::Constant(Bson::Document(constants.collect()))
    }

    /// An array; a constant if all elements are.
    pub fn array(values: Vec<Value>) -> Self {
        if values.iter().any(|value| !matches!(value, Value::Constant(_))) {
            return Value::Array(values);
        }
        Value::Constant(Bson::Array(values.into_iter().filter_map(Value::into_constant).collect()))
    }

    /// Visits all generators in the value, including those in the arguments of others.
    pub fn for_each_generator<'a>(&'a self, visit: &mut dyn FnMut(&'a Generator)) {
        match self {
            Value::Constant(_) => {}
            Value::Document(fields) => {
                fields.iter().for_each(|(_, value)| value.for_each_generator(visit))
            }
            Value::Array(values) => values.iter().for_each(|value| value.for_each_generator(visit)),
            Value::Generated(generator) => {
                visit(generator);
                generator.arguments().into_iter().for_each(|value| value.for_each_generator(visit));
            }
        }
    }

    fn into_constant(self) -> Option<Bson> {
        match self {
            Value::Constant(constant) => Some(constant),
            _ => None,
        }
    }
}

/// How a value is generated.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// `"%number"`: the document's number in its collection, or the operation's, from 0 (64-bit integer).
    Number,
    /// `{%int: [1, 100], law: …}`: an integer, both ends included; 32 bits wide if both ends are.
    Int { min: i64, max: i64, law: Law },
    /// `{%double: [0, 1], law: …}`.
    Double { min: f64, max: f64, law: Law },
    /// `{%decimal: ["0.01", "99.99"], law: …}`: both ends in units of the last digit of the more precise one.
    Decimal { min: i64, max: i64, digits: u8, law: Law },
    /// `{%boolean: 0.3}`: true with this probability.
    Boolean { probability: f64 },
    /// `{%date: ["2026-01-01", "2026-11-01"], law: …}`: milliseconds since 1970, the later end excluded.
    Date { from_ms: i64, to_ms: i64, law: Law },
    /// `"%now"`: the time of generation, or the time that the plan pins.
    Now,
    /// `{%series: {start: "2026-01-01", step: "10s", jitter: "1s"}, at: …}`: start + step × number, ± jitter.
    Series { start_ms: i64, step_ms: i64, jitter_ms: i64, at: Option<Value> },
    /// `"%objectid"`.
    ObjectId,
    /// `"%uuid"`: binary of subtype 4, version 4.
    Uuid,
    /// `{%binary: 100, compressible: 0.5}`.
    Binary { bytes: Size, compressible: f64 },
    /// `{%string: 12, alphabet: "abc", compressible: 0.5}`: characters of the alphabet, letters and digits by default.
    Text { length: Size, alphabet: Vec<char>, compressible: f64 },
    /// `{%mask: "###-@@"}`: `#` is a digit and `@` a lower-case letter.
    Mask(String),
    /// `{%words: 5, of: ["red", …]}`: words separated by spaces.
    Words { count: Size, words: Vec<String>, law: Law },
    /// `{%syllables: NUMBER, of: ["BAR", …]}`: one syllable for each digit of the number, in base `of.len()`, three
    /// digits at least.
    Syllables { number: Value, syllables: Vec<String> },
    /// `{%choose: {open: 5, paid: 15}}` by weight, or `{%choose: [1, 2, 3], law: …}` by a law over the places.
    Choose { values: Vec<Value>, choice: Choice },
    /// `{%array: [1, 8], of: {…}, distinct: true}`. With `distinct`, elements that compare equal are drawn again.
    Array { length: Size, of: Value, distinct: bool },
    /// `{%maybe: 0.2, of: …}`: absent, except with this probability.
    Maybe { probability: f64, of: Value },
    /// `{%from: "orders.customer", law: …, at: NUMBER}`: the value at a path of an existing document, which a law chooses
    /// (the plan's `keys` by default), or whose number is given.
    From { collection: String, path: Vec<String>, law: Option<Law>, at: Option<Value> },
    /// `"%new orders"` or `{%new: "orders"}`: the next new document of a collection.
    New { collection: String },
    /// `"%sku"`: a value of `let`.
    Variable(String),
    /// `{%reply: "STEP.path.to.value"}`: a value out of the reply to an earlier step, by the step's number from 0.
    Reply { step: usize, path: Vec<String> },
    /// `{%add: [a, b]}` and the other functions on values.
    Compute { function: Function, arguments: Vec<Value> },
}

impl Generator {
    /// Arguments that are values.
    pub fn arguments(&self) -> Vec<&Value> {
        match self {
            Generator::Series { at, .. } | Generator::From { at, .. } => at.iter().collect(),
            Generator::Syllables { number, .. } => vec![number],
            Generator::Choose { values, .. } => values.iter().collect(),
            Generator::Array { of, .. } | Generator::Maybe { of, .. } => vec![of],
            Generator::Compute { arguments, .. } => arguments.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// A number of things, such as characters of a string: fixed, or drawn for each value.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    pub min: u32,
    pub max: u32,
    pub law: Law,
}

/// How `%choose` chooses.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Weights, none negative, their sum positive.
    Weights(Vec<f64>),
    Law(Law),
}

/// The probability of each value of a range. Laws over integers draw a rank from 0 to `n - 1`; `min` has rank 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Law {
    #[default]
    Uniform,
    /// `{zipf: 0.99}`: rank r has probability proportional to (r + 1)^-exponent. Any exponent above 0.
    Zipf { exponent: f64 },
    /// `{latest: 0.99}`: the same from the greatest value down.
    Latest { exponent: f64 },
    /// `{hotspot: {data: 0.2, draws: 0.8}}`: a share of the draws goes to the first share of the ranks.
    Hotspot { data: f64, draws: f64 },
    /// `"sequential"`: rank = number modulo n.
    Sequential,
    /// `{nurand: {a: 1023, c: 7}}`: TPC-C's NURand(A, x, y) = (((rand(0, A) | rand(x, y)) + C) mod (y − x + 1)) + x.
    NuRand { a: u64, c: u64 },
    /// `{normal: {mean: 50, sd: 10}}`: in units of the value; values outside of the range are drawn again.
    Normal { mean: f64, sd: f64 },
    /// `{lognormal: {mu: 3, sigma: 1}}`: likewise.
    LogNormal { mu: f64, sigma: f64 },
    /// `{exponential: {mean: 20}}`: mean of the distance from `min`; likewise.
    Exponential { mean: f64 },
    /// `{geometric: 0.382}`: number of failures before the first success, added to `min`; likewise.
    Geometric { probability: f64 },
    /// `{poisson: 4}`: mean, added to `min`; likewise.
    Poisson { mean: f64 },
    /// `{histogram: [[0, 5], [10, 95]]}` or a file of lines `value weight`: each value and its weight; only for integers.
    Histogram { values: Vec<i64>, weights: Vec<f64> },
}

/// A function on values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    /// Integers are divided without rest towards zero.
    Divide,
    Modulo,
    Min,
    Max,
    /// Texts, and numbers as decimal digits.
    Concat,
    /// `{%pad: [number, width]}`: zeros on the left.
    Pad,
    /// `{%nth: [array, n]}`, from 0.
    Nth,
    /// `{%middle: array}`: the element at ⌈length / 2⌉, counted from 1, as in TPC-C's search by last name.
    Middle,
    /// `{%length: array}` or of a text.
    Length,
}

impl Function {
    /// Name of the generator, without `%`.
    pub fn name(self) -> &'static str {
        match self {
            Function::Add => "add",
            Function::Subtract => "subtract",
            Function::Multiply => "multiply",
            Function::Divide => "divide",
            Function::Modulo => "modulo",
            Function::Min => "min",
            Function::Max => "max",
            Function::Concat => "concat",
            Function::Pad => "pad",
            Function::Nth => "nth",
            Function::Middle => "middle",
            Function::Length => "length",
        }
    }
}
