//! Reads the arguments of each generator, and refuses those that cannot work.

use super::call::Call;
use super::error::{Mistake, TemplateErrorKind as Kind, shortened};
use super::laws::{Domain, check_weights};
use super::lexical::generator_name;
use super::model::{Choice, Function, Generator, LETTERS_AND_DIGITS, MAX_PAD_WIDTH, Value};
use super::nodes::{
    MAX_DIGITS, date_ms, decimal_text, decimal_units, double, fraction_digits, list,
    non_empty_text, ordered, probability, span_ms, text, texts,
};
use super::tree::{Node, NodeKind};
use crate::nearest::nearest;
use bson::Bson;
use std::ops::RangeInclusive;

type Read = Result<Generator, Mistake>;

pub(super) fn number(_: &mut Call<'_>) -> Read {
    Ok(Generator::Number)
}

pub(super) fn now(_: &mut Call<'_>) -> Read {
    Ok(Generator::Now)
}

pub(super) fn object_id(_: &mut Call<'_>) -> Read {
    Ok(Generator::ObjectId)
}

pub(super) fn uuid(_: &mut Call<'_>) -> Read {
    Ok(Generator::Uuid)
}

pub(super) fn int(call: &mut Call<'_>) -> Read {
    let (min, max) = call.integer_ends()?;
    Ok(Generator::Int { min, max, law: call.law(Domain::Integers(min, max))? })
}

pub(super) fn double_between(call: &mut Call<'_>) -> Read {
    let (first, second) = call.ends()?;
    let (min, max) = (double(first, "a number")?, double(second, "a number")?);
    ordered(second, min, max, min <= max)?;
    Ok(Generator::Double { min, max, law: call.law(Domain::Reals(min, max))? })
}

pub(super) fn decimal(call: &mut Call<'_>) -> Read {
    let (first, second) = call.ends()?;
    let ends = [decimal_text(first)?, decimal_text(second)?];
    let digits = ends.iter().map(|(_, end)| fraction_digits(end)).max().unwrap_or(0);
    let units = |(node, end): &(&Node, String)| {
        decimal_units(end, digits).ok_or_else(|| {
            node.misfit(format!(
                "a decimal number such as \"0.01\" with at most {MAX_DIGITS} digits"
            ))
        })
    };
    let (min, max) = (units(&ends[0])?, units(&ends[1])?);
    ordered(second, &ends[0].1, &ends[1].1, min <= max)?;
    let law = call.law(Domain::Units(min, max))?;
    Ok(Generator::Decimal { min, max, digits: digits as u8, law })
}

pub(super) fn boolean(call: &mut Call<'_>) -> Read {
    Ok(Generator::Boolean { probability: probability(call.argument)? })
}

pub(super) fn date(call: &mut Call<'_>) -> Read {
    let (first, second) = call.ends()?;
    let (from_ms, to_ms) = (date_ms(first)?, date_ms(second)?);
    if from_ms >= to_ms {
        let expected = "a date after the first one; the second date is excluded";
        return Err(Mistake::new(second.offset, Kind::Range, second.found(), expected));
    }
    Ok(Generator::Date { from_ms, to_ms, law: call.law(Domain::Units(from_ms, to_ms - 1))? })
}

pub(super) fn series(call: &mut Call<'_>) -> Read {
    let NodeKind::Document(entries) = &call.argument.kind else {
        return Err(call.misfit("`start` and `step`"));
    };
    let (mut start_ms, mut step_ms, mut jitter_ms) = (None, None, 0);
    for entry in entries {
        match entry.key.as_str() {
            "start" => start_ms = Some(date_ms(&entry.value)?),
            "step" => step_ms = Some(positive_span_ms(&entry.value)?),
            "jitter" => jitter_ms = span_ms(&entry.value)?,
            other => {
                let found = format!("`{other}` in `%series`");
                let expected = "`start`, `step` or `jitter`";
                return Err(Mistake::new(entry.offset, Kind::UnknownName, found, expected)
                    .suggest(nearest(other, ["start", "step", "jitter"])));
            }
        }
    }
    let start_ms = start_ms.ok_or_else(|| call.missing("start"))?;
    let step_ms = step_ms.ok_or_else(|| call.missing("step"))?;
    Ok(Generator::Series { start_ms, step_ms, jitter_ms, at: call.optional_value("at")? })
}

fn positive_span_ms(node: &Node) -> Result<i64, Mistake> {
    match span_ms(node)? {
        0 => Err(Mistake::new(node.offset, Kind::Range, node.found(), "a time above 0")),
        span_ms => Ok(span_ms),
    }
}

pub(super) fn binary(call: &mut Call<'_>) -> Read {
    Ok(Generator::Binary { bytes: call.size(true)?, compressible: call.compressible()? })
}

pub(super) fn string(call: &mut Call<'_>) -> Read {
    let alphabet = match call.option("alphabet") {
        None => LETTERS_AND_DIGITS.chars().collect(),
        Some(node) => non_empty_text(node, "characters such as \"abc\"")?.chars().collect(),
    };
    Ok(Generator::Text { length: call.size(true)?, alphabet, compressible: call.compressible()? })
}

pub(super) fn mask(call: &mut Call<'_>) -> Read {
    Ok(Generator::Mask(text(call.argument, "a mask such as \"###-@@\"")?.to_owned()))
}

pub(super) fn words(call: &mut Call<'_>) -> Read {
    let of = call.required("of")?;
    let words = match &of.kind {
        NodeKind::Text(file) => call.lines(of, file)?,
        _ => texts(of)?,
    };
    if words.is_empty() {
        let expected = "a list of words, or a file with one in each line";
        return Err(Mistake::new(of.offset, Kind::Range, "no words", expected));
    }
    let law = call.law(Domain::Integers(0, words.len() as i64 - 1))?;
    Ok(Generator::Words { count: call.size(false)?, words, law })
}

pub(super) fn syllables(call: &mut Call<'_>) -> Read {
    let of = call.required("of")?;
    let syllables = texts(of)?;
    if syllables.len() < 2 {
        let found = format!("{} syllables", syllables.len());
        return Err(Mistake::new(of.offset, Kind::Range, found, "at least 2 syllables"));
    }
    Ok(Generator::Syllables { number: call.value()?, syllables })
}

pub(super) fn choose(call: &mut Call<'_>) -> Read {
    match &call.argument.kind {
        NodeKind::Document(entries) => {
            if let Some(option) = call.options.first() {
                let found = format!("`{}` behind weights", option.key);
                let expected = "a list of values with this option";
                return Err(Mistake::new(option.offset, Kind::Form, found, expected));
            }
            let (mut values, mut weights) = (Vec::new(), Vec::new());
            for entry in entries {
                if generator_name(&entry.key).is_some() {
                    let found = format!("the generator `{}` with a weight", shortened(&entry.key));
                    let expected = "a list of values with `weights`; `%%` is a literal `%`";
                    return Err(Mistake::new(entry.offset, Kind::Form, found, expected));
                }
                let text = entry.key.strip_prefix('%').unwrap_or(&entry.key);
                values.push(Value::Constant(text.into()));
                weights.push(double(&entry.value, "a weight")?);
            }
            check_weights(call.argument, &weights)?;
            Ok(Generator::Choose { values, choice: Choice::Weights(weights) })
        }
        NodeKind::Array(nodes) if !nodes.is_empty() => {
            let values = call.values_of(nodes)?;
            Ok(Generator::Choose { choice: choice(call, values.len())?, values })
        }
        _ => Err(call.misfit("weights or a list of values")),
    }
}

/// The options `weights` or `law` behind a list of values.
fn choice(call: &Call<'_>, values: usize) -> Result<Choice, Mistake> {
    let Some(node) = call.option("weights") else {
        return Ok(Choice::Law(call.law(Domain::Integers(0, values as i64 - 1))?));
    };
    if let Some(law) = call.option("law") {
        return Err(Mistake::new(law.offset, Kind::Form, "`law` and `weights`", "one of them"));
    }
    let weights = list(node, "a list of weights")?;
    let weights: Vec<f64> =
        weights.iter().map(|weight| double(weight, "a weight")).collect::<Result<_, _>>()?;
    if weights.len() != values {
        let found = format!("{} weights for {values} values", weights.len());
        return Err(Mistake::new(node.offset, Kind::Range, found, format!("{values} weights")));
    }
    check_weights(node, &weights)?;
    Ok(Choice::Weights(weights))
}

pub(super) fn array(call: &mut Call<'_>) -> Read {
    let of = call.required("of")?;
    let of_value = call.value_of(of)?;
    let distinct = match call.option("distinct") {
        None => false,
        Some(Node { kind: NodeKind::Constant(Bson::Boolean(distinct)), .. }) => *distinct,
        Some(node) => return Err(node.misfit("`true` or `false`")),
    };
    let length = call.size(true)?;
    if distinct
        && let Some(values) = distinct_values(&of_value)
        && values < u64::from(length.max)
    {
        let found = format!("{values} different elements");
        let expected = format!("at least {}", length.max);
        return Err(Mistake::new(of.offset, Kind::Range, found, expected));
    }
    Ok(Generator::Array { length, of: of_value, distinct })
}

/// Number of values that a template can have, if it is small enough to count.
fn distinct_values(value: &Value) -> Option<u64> {
    match value {
        Value::Constant(_) => Some(1),
        Value::Document(_) | Value::Array(_) => None,
        Value::Generated(generator) => match generator.as_ref() {
            Generator::Int { min, max, .. } => {
                u64::try_from(i128::from(*max) - i128::from(*min) + 1).ok()
            }
            Generator::Boolean { .. } => Some(2),
            Generator::Choose { values, .. } => values
                .iter()
                .map(distinct_values)
                .try_fold(0u64, |sum, values| Some(sum.saturating_add(values?))),
            _ => None,
        },
    }
}

pub(super) fn maybe(call: &mut Call<'_>) -> Read {
    let of = call.required("of")?;
    Ok(Generator::Maybe { probability: probability(call.argument)?, of: call.value_of(of)? })
}

pub(super) fn from(call: &mut Call<'_>) -> Read {
    let path = text(call.argument, "`COLLECTION.PATH`")?;
    let mut parts = path.split('.').map(str::to_owned);
    let collection = parts.next().unwrap_or_default();
    let path: Vec<String> = parts.collect();
    if path.is_empty() || collection.is_empty() || path.iter().any(String::is_empty) {
        return Err(call.misfit("`COLLECTION.PATH`"));
    }
    let law = match call.option("law") {
        Some(_) => Some(call.law(Domain::Documents)?),
        None => None,
    };
    let at = call.optional_value("at")?;
    if let (Some(_), Some(node)) = (&law, call.option("at")) {
        return Err(Mistake::new(node.offset, Kind::Form, "`at` and `law`", "one of them"));
    }
    Ok(Generator::From { collection, path, law, at })
}

pub(super) fn new(call: &mut Call<'_>) -> Read {
    let collection = non_empty_text(call.argument, "the name of a collection")?.to_owned();
    Ok(Generator::New { collection })
}

pub(super) fn reply(call: &mut Call<'_>) -> Read {
    const EXPECTED: &str = "a step's number from 0 and a path in its reply";
    let (step, path) =
        text(call.argument, EXPECTED)?.split_once('.').ok_or_else(|| call.misfit(EXPECTED))?;
    let step = step.parse().map_err(|_| call.misfit(EXPECTED))?;
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    if path.iter().any(String::is_empty) {
        return Err(call.misfit(EXPECTED));
    }
    Ok(Generator::Reply { step, path })
}

macro_rules! functions {
    ($($read:ident $function:ident $min:literal..=$max:expr;)*) => {$(
        pub(super) fn $read(call: &mut Call<'_>) -> Read {
            compute(call, Function::$function, $min..=$max)
        }
    )*};
}

functions! {
    add Add 2..=usize::MAX;
    subtract Subtract 2..=2;
    multiply Multiply 2..=usize::MAX;
    divide Divide 2..=2;
    modulo Modulo 2..=2;
    min Min 2..=usize::MAX;
    max Max 2..=usize::MAX;
    concat Concat 1..=usize::MAX;
    nth Nth 2..=2;
}

/// A function whose argument is a list of a permitted length.
fn compute(call: &mut Call<'_>, function: Function, lengths: RangeInclusive<usize>) -> Read {
    let (min, max) = lengths.into_inner();
    match &call.argument.kind {
        NodeKind::Array(nodes) if (min..=max).contains(&nodes.len()) => {
            Ok(Generator::Compute { function, arguments: call.values_of(nodes)? })
        }
        _ if min == max => Err(call.misfit(&format!("a list of {min} values"))),
        _ => Err(call.misfit(&format!("a list of at least {min} values"))),
    }
}

pub(super) fn pad(call: &mut Call<'_>) -> Read {
    let pad = compute(call, Function::Pad, 2..=2)?;
    if let NodeKind::Array(nodes) = &call.argument.kind
        && let [_, Node { offset, kind: NodeKind::Constant(width) }] = nodes.as_slice()
        && !matches!(width, Bson::Int32(width) if (0..=MAX_PAD_WIDTH as i32).contains(width))
    {
        let expected = format!("an integer from 0 to {MAX_PAD_WIDTH}");
        return Err(Mistake::new(*offset, Kind::Range, nodes[1].found(), expected));
    }
    Ok(pad)
}

pub(super) fn middle(call: &mut Call<'_>) -> Read {
    Ok(Generator::Compute { function: Function::Middle, arguments: vec![call.value()?] })
}

pub(super) fn length(call: &mut Call<'_>) -> Read {
    Ok(Generator::Compute { function: Function::Length, arguments: vec![call.value()?] })
}
