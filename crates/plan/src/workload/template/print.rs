//! Prints templates as one would type them in mongosh. Reading the text again gives the same value.

use super::model::{Choice, Function, Generator, LETTERS_AND_DIGITS, Law, Size, Value};
use super::piece::{Piece, date_text, literal_key, of_constant, word};
use crate::units::Span;
use bson::Bson;
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

/// `{}` prints one line, and `{:#}` breaks long documents and arrays into lines.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let piece = of_value(self);
        formatter.write_str(&if formatter.alternate() { piece.broken(0) } else { piece.line() })
    }
}

fn of_value(value: &Value) -> Piece {
    match value {
        Value::Constant(constant) => of_constant(constant),
        Value::Document(fields) => Piece::Document(
            fields.iter().map(|(key, value)| (literal_key(key), of_value(value))).collect(),
        ),
        Value::Array(values) => of_values(values),
        Value::Generated(generator) => of_generator(generator),
    }
}

fn of_values(values: &[Value]) -> Piece {
    Piece::Array(values.iter().map(of_value).collect())
}

/// A generator as a document, whose options follow the argument.
struct Options(Vec<(String, Piece)>);

impl Options {
    fn new(name: &str, argument: Piece) -> Self {
        Options(vec![(format!("%{name}"), argument)])
    }

    fn with(mut self, name: &str, value: Option<Piece>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value)));
        self
    }

    fn law(self, law: &Law) -> Self {
        let law = (*law != Law::Uniform).then(|| of_law(law));
        self.with("law", law)
    }

    fn compressible(self, share: f64) -> Self {
        let share = (share != 0.0).then(|| number(share));
        self.with("compressible", share)
    }

    fn piece(self) -> Piece {
        Piece::Document(self.0)
    }
}

fn of_generator(generator: &Generator) -> Piece {
    let options = match generator {
        Generator::Number => return word("%number"),
        Generator::Now => return word("%now"),
        Generator::ObjectId => return word("%objectid"),
        Generator::Uuid => return word("%uuid"),
        Generator::Variable(name) => return word(&format!("%{name}")),
        Generator::New { collection } if collection.trim() == collection => {
            return word(&format!("%new {collection}"));
        }
        Generator::New { collection } => Options::new("new", word(collection)),
        Generator::Int { min, max, law } => of_int(*min, *max, law),
        Generator::Double { min, max, law } => {
            Options::new("double", Piece::Array(vec![number(*min), number(*max)])).law(law)
        }
        Generator::Decimal { min, max, digits, law } => {
            let ends = [min, max].map(|units| word(&decimal_text(*units, usize::from(*digits))));
            Options::new("decimal", Piece::Array(ends.into())).law(law)
        }
        Generator::Boolean { probability } => Options::new("boolean", number(*probability)),
        Generator::Date { from_ms, to_ms, law } => {
            Options::new("date", Piece::Array(vec![of_date(*from_ms), of_date(*to_ms)])).law(law)
        }
        Generator::Series { start_ms, step_ms, jitter_ms, at } => {
            let mut clock = vec![
                ("start".to_owned(), of_date(*start_ms)),
                ("step".to_owned(), of_span(*step_ms)),
            ];
            if *jitter_ms != 0 {
                clock.push(("jitter".to_owned(), of_span(*jitter_ms)));
            }
            Options::new("series", Piece::Document(clock)).with("at", at.as_ref().map(of_value))
        }
        Generator::Binary { bytes, compressible } => {
            Options::new("binary", of_ends(bytes)).law(&bytes.law).compressible(*compressible)
        }
        Generator::Text { length, alphabet, compressible } => {
            let alphabet: String = alphabet.iter().collect();
            let alphabet = (alphabet != LETTERS_AND_DIGITS).then(|| word(&alphabet));
            let options = Options::new("string", of_ends(length)).law(&length.law);
            options.with("alphabet", alphabet).compressible(*compressible)
        }
        Generator::Mask(mask) => Options::new("mask", word(mask)),
        Generator::Words { count, words, law } => {
            Options::new("words", of_size(count)).with("of", Some(texts(words))).law(law)
        }
        Generator::Syllables { number, syllables } => {
            Options::new("syllables", of_value(number)).with("of", Some(texts(syllables)))
        }
        Generator::Choose { values, choice } => of_choice(values, choice),
        Generator::Array { length, of, distinct } => {
            let options = Options::new("array", of_ends(length))
                .law(&length.law)
                .with("of", Some(of_value(of)));
            options.with("distinct", distinct.then(|| Piece::Word("true".into())))
        }
        Generator::Maybe { probability, of } => {
            Options::new("maybe", number(*probability)).with("of", Some(of_value(of)))
        }
        Generator::From { collection, path, law, at } => {
            let options = Options::new("from", word(&format!("{collection}.{}", path.join("."))));
            options.with("law", law.as_ref().map(of_law)).with("at", at.as_ref().map(of_value))
        }
        Generator::Reply { step, path } => {
            Options::new("reply", word(&format!("{step}.{}", path.join("."))))
        }
        Generator::Compute { function, arguments } => {
            Options::new(function.name(), of_arguments(*function, arguments))
        }
    };
    options.piece()
}

fn of_int(min: i64, max: i64, law: &Law) -> Options {
    Options::new("int", of_integers([min, max])).law(law)
}

fn of_integers(ends: [i64; 2]) -> Piece {
    Piece::Array(ends.map(|end| Piece::Word(end.to_string())).into())
}

/// Functions of one argument take the argument, and others a list.
fn of_arguments(function: Function, arguments: &[Value]) -> Piece {
    match (function, arguments) {
        (Function::Middle | Function::Length, [argument]) => of_value(argument),
        _ => of_values(arguments),
    }
}

/// Weights behind strings if all values are strings that can be keys, otherwise a list.
fn of_choice(values: &[Value], choice: &Choice) -> Options {
    let list = || Options::new("choose", of_values(values));
    let weights = match choice {
        Choice::Law(law) => return list().law(law),
        Choice::Weights(weights) => weights,
    };
    let keys = values.iter().map(|value| match value {
        Value::Constant(Bson::String(text)) if !text.contains('\0') => Some(text),
        _ => None,
    });
    match keys.collect::<Option<Vec<&String>>>() {
        Some(keys) if keys.iter().collect::<HashSet<_>>().len() == keys.len() => {
            let fields =
                keys.iter().zip(weights).map(|(key, weight)| (literal_key(key), number(*weight)));
            Options::new("choose", Piece::Document(fields.collect()))
        }
        _ => list()
            .with("weights", Some(Piece::Array(weights.iter().copied().map(number).collect()))),
    }
}

/// A size without its law.
fn of_ends(size: &Size) -> Piece {
    if size.min == size.max {
        Piece::Word(size.min.to_string())
    } else {
        of_integers([size.min.into(), size.max.into()])
    }
}

/// A size with its law, where `law` is the law of something else.
fn of_size(size: &Size) -> Piece {
    if size.law == Law::Uniform {
        of_ends(size)
    } else {
        of_int(size.min.into(), size.max.into(), &size.law).piece()
    }
}

fn of_law(law: &Law) -> Piece {
    let parameters = |values: &[(&str, f64)]| {
        Piece::Document(
            values.iter().map(|(name, value)| ((*name).to_owned(), number(*value))).collect(),
        )
    };
    let (name, parameters) = match law {
        Law::Uniform => return word("uniform"),
        Law::Sequential => return word("sequential"),
        Law::Zipf { exponent } => ("zipf", number(*exponent)),
        Law::Latest { exponent } => ("latest", number(*exponent)),
        Law::Hotspot { data, draws } => {
            ("hotspot", parameters(&[("data", *data), ("draws", *draws)]))
        }
        Law::NuRand { a, c } => ("nurand", parameters(&[("a", *a as f64), ("c", *c as f64)])),
        Law::Normal { mean, sd } => ("normal", parameters(&[("mean", *mean), ("sd", *sd)])),
        Law::LogNormal { mu, sigma } => {
            ("lognormal", parameters(&[("mu", *mu), ("sigma", *sigma)]))
        }
        Law::Exponential { mean } => ("exponential", parameters(&[("mean", *mean)])),
        Law::Geometric { probability } => ("geometric", number(*probability)),
        Law::Poisson { mean } => ("poisson", number(*mean)),
        Law::Histogram { values, weights } => {
            let bins = values.iter().zip(weights);
            let bins = bins.map(|(value, weight)| {
                Piece::Array(vec![Piece::Word(value.to_string()), number(*weight)])
            });
            ("histogram", Piece::Array(bins.collect()))
        }
    };
    Piece::Document(vec![(name.to_owned(), parameters)])
}

/// A parameter, without a point if it is an integer.
fn number(value: f64) -> Piece {
    // Up to here, integers are printed exactly and are short.
    let is_short = value.fract() == 0.0 && value.abs() < 1e16;
    Piece::Word(if is_short { format!("{value}") } else { format!("{value:?}") })
}

fn of_date(time_ms: i64) -> Piece {
    match date_text(time_ms) {
        Some(text) => word(text.strip_suffix("T00:00:00Z").unwrap_or(&text)),
        None => Piece::Word(time_ms.to_string()),
    }
}

fn of_span(time_ms: i64) -> Piece {
    word(&Span(Duration::from_millis(time_ms.unsigned_abs())).to_string())
}

fn decimal_text(units: i64, digits: usize) -> String {
    let sign = if units < 0 { "-" } else { "" };
    let text = format!("{:0>width$}", units.unsigned_abs(), width = digits + 1);
    let (whole, fraction) = text.split_at(text.len() - digits);
    if digits == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn texts(texts: &[String]) -> Piece {
    Piece::Array(texts.iter().map(|text| word(text)).collect())
}
