//! The table of laws, their parameters, and the values that they fit.

use super::error::{Mistake, TemplateErrorKind as Kind, shortened};
use super::model::Law;
use super::nodes::{ReadFile, double, integer, lines, list, number_in, probability};
use super::tree::{Entry, Node, NodeKind};
use crate::nearest::nearest;

/// A law as people write it.
pub struct LawEntry {
    pub name: &'static str,
    /// One sentence.
    pub meaning: &'static str,
    pub example: &'static str,
    fits: Fits,
    form: LawForm,
}

/// Values that a law can draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fits {
    /// Integers as they are written.
    Integers,
    /// Also integers in a unit of their own, such as milliseconds and cents.
    Units,
    /// Also doubles.
    Reals,
}

enum LawForm {
    /// As a string.
    Word(Law),
    /// As a document with a key.
    Parameters(fn(&Parameters<'_>) -> Result<Law, Mistake>),
}

/// Parameters of a law as they are written.
struct Parameters<'a> {
    node: &'a Node,
    /// Of the law.
    example: &'static str,
    read_file: ReadFile<'a>,
}

/// The values that a law draws from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Domain {
    /// Integers, both ends included.
    Integers(i64, i64),
    /// Integers in a unit, both ends included.
    Units(i64, i64),
    Reals(f64, f64),
    /// Numbers of documents.
    Documents,
}

/// A draw outside of the range is repeated, so a range with less than this probability would take too long.
const MIN_ACCEPTED: f64 = 0.01;

macro_rules! laws {
    ($($name:literal $fits:ident $form:expr, $example:literal, $meaning:literal;)*) => {
        /// All laws, in the order of the reference.
        pub const LAWS: &[LawEntry] = &[$(LawEntry {
            name: $name,
            meaning: $meaning,
            example: $example,
            fits: Fits::$fits,
            form: $form,
        }),*];
    };
}

laws! {
    "uniform" Reals LawForm::Word(Law::Uniform), r#""uniform""#,
        "All values are equally probable. This is the default.";
    "zipf" Units LawForm::Parameters(zipf), "{zipf: 0.99}",
        "Value number r from the smallest, from 0, has a probability proportional to (r + 1)^-exponent.";
    "latest" Units LawForm::Parameters(latest), "{latest: 0.99}",
        "As `zipf`, from the greatest value down.";
    "hotspot" Units LawForm::Parameters(hotspot), "{hotspot: {data: 0.2, draws: 0.8}}",
        "The share `draws` of the draws goes to the first share `data` of the values.";
    "sequential" Units LawForm::Word(Law::Sequential), r#""sequential""#,
        "The values in turn, from the smallest, by the number of the document or operation.";
    "nurand" Units LawForm::Parameters(nurand), "{nurand: {a: 1023, c: 7}}",
        "NURand of TPC-C, clause 2.1.6: (((random(0, a) | random(min, max)) + c) modulo (max − min + 1)) + min.";
    "normal" Reals LawForm::Parameters(normal), "{normal: {mean: 50, sd: 10}}",
        "Normal law with mean and standard deviation. Values outside of the range are drawn again.";
    "lognormal" Reals LawForm::Parameters(lognormal), "{lognormal: {mu: 3, sigma: 1}}",
        "The logarithm of the value has a normal law. Values outside of the range are drawn again.";
    "exponential" Reals LawForm::Parameters(exponential), "{exponential: {mean: 20}}",
        "Exponential law of the distance from the smallest value. Values outside of the range are drawn again.";
    "geometric" Units LawForm::Parameters(geometric), "{geometric: 0.382}",
        "Failures before the first success of this probability, added to the smallest value. Values outside of the range are drawn again.";
    "poisson" Units LawForm::Parameters(poisson), "{poisson: 4}",
        "Poisson law with this mean, added to the smallest value. Values outside of the range are drawn again.";
    "histogram" Integers LawForm::Parameters(histogram), "{histogram: [[1, 5], [10, 95]]}",
        "Values with their weights, or a file with a value and a weight in each line.";
}

/// Reads a law, and refuses one that cannot draw from the domain.
pub(super) fn read(read_file: ReadFile<'_>, node: &Node, domain: Domain) -> Result<Law, Mistake> {
    let (offset, entry, parameters) = named(node)?;
    if !domain.accepts(entry.fits) {
        let found = format!("the law `{}` for {}", entry.name, domain.name());
        let fitting = LAWS.iter().filter(|law| domain.accepts(law.fits));
        let names: Vec<String> = fitting.map(|law| format!("`{}`", law.name)).collect();
        return Err(Mistake::new(offset, Kind::Form, found, names.join(" or ")));
    }
    let law = match (&entry.form, parameters) {
        (LawForm::Word(law), None) => law.clone(),
        (LawForm::Parameters(read), Some(node)) => {
            read(&Parameters { node, example: entry.example, read_file })?
        }
        _ => return Err(misfit(node, entry)),
    };
    domain.check(&law, offset)?;
    Ok(law)
}

/// The law of a node, and its parameters if it is written as a document.
fn named(node: &Node) -> Result<(usize, &'static LawEntry, Option<&Node>), Mistake> {
    let (offset, name, parameters) = match &node.kind {
        NodeKind::Text(name) => (node.offset, name, None),
        NodeKind::Document(entries) => match entries.as_slice() {
            [Entry { offset, key, value }] => (*offset, key, Some(value)),
            _ => return Err(node.misfit("a document with one law")),
        },
        _ => return Err(node.misfit("a law such as `{zipf: 0.99}`")),
    };
    match LAWS.iter().find(|law| law.name == name) {
        Some(entry) => Ok((offset, entry, parameters)),
        None => {
            let mistake =
                Mistake::new(offset, Kind::UnknownName, format!("`{}`", shortened(name)), "a law");
            Err(mistake.suggest(nearest(name, LAWS.iter().map(|law| law.name))))
        }
    }
}

fn misfit(node: &Node, entry: &LawEntry) -> Mistake {
    let kind = if matches!(node.kind, NodeKind::Text(_)) { Kind::Missing } else { Kind::Form };
    let mistake = Mistake::new(node.offset, kind, node.found(), format!("`{}`", entry.example));
    mistake.suggest(Some(entry.example))
}

impl Domain {
    fn accepts(self, fits: Fits) -> bool {
        match self {
            Domain::Integers(..) => true,
            Domain::Units(..) | Domain::Documents => fits != Fits::Integers,
            Domain::Reals(..) => fits == Fits::Reals,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Domain::Integers(..) => "integers",
            Domain::Units(..) => "dates or decimals",
            Domain::Reals(..) => "doubles",
            Domain::Documents => "documents",
        }
    }

    /// Smallest and greatest value, if both are known.
    fn ends(self) -> Option<(f64, f64)> {
        match self {
            Domain::Integers(min, max) | Domain::Units(min, max) => Some((min as f64, max as f64)),
            Domain::Reals(min, max) => Some((min, max)),
            Domain::Documents => None,
        }
    }

    /// Refuses a law that hardly ever draws a value of the range, and a histogram with values outside of it.
    fn check(self, law: &Law, offset: usize) -> Result<(), Mistake> {
        let Some((min, max)) = self.ends() else { return Ok(()) };
        if let Law::Histogram { values, .. } = law
            && let Some(value) =
                values.iter().find(|value| (**value as f64) < min || (**value as f64) > max)
        {
            let expected = format!("values from {min} to {max}");
            let found = format!("the value {value} in a histogram");
            return Err(Mistake::new(offset, Kind::Range, found, expected));
        }
        // An integer is drawn from the numbers that round to it.
        let rounding = if matches!(self, Domain::Reals(..)) { 0.0 } else { 0.5 };
        let accepted = accepted_probability(law, min - rounding, max + rounding);
        if accepted < MIN_ACCEPTED {
            let found = format!(
                "a law that draws {:.2} % of its values from {min} to {max}",
                accepted * 100.0
            );
            let expected = format!("at least {} %", MIN_ACCEPTED * 100.0);
            return Err(Mistake::new(offset, Kind::Range, found, expected));
        }
        Ok(())
    }
}

/// Probability that a law draws a value of a range; 1 for laws that draw no others. The range of integers includes the
/// numbers that round to its ends.
fn accepted_probability(law: &Law, min: f64, max: f64) -> f64 {
    let width = max - min;
    match law {
        Law::Normal { mean, sd } => {
            normal_below((max - mean) / sd) - normal_below((min - mean) / sd)
        }
        Law::LogNormal { mu, sigma } => {
            let below = |value: f64| {
                if value > 0.0 { normal_below((value.ln() - mu) / sigma) } else { 0.0 }
            };
            below(max) - below(min)
        }
        Law::Exponential { mean } => 1.0 - (-width / mean).exp(),
        Law::Geometric { probability } => 1.0 - (1.0 - probability).powf(width),
        // By the normal law of the same mean and variance.
        Law::Poisson { mean } => normal_below((width - 0.5 - mean) / mean.sqrt()),
        _ => 1.0,
    }
}

/// Probability of a value below `z` by the standard normal law, to 1e-5: Abramowitz and Stegun, 26.2.16.
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.33267 * z.abs());
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let above = density * t * (0.436_183_6 + t * (-0.120_167_6 + t * 0.937_298_0));
    if z < 0.0 { above } else { 1.0 - above }
}

impl Parameters<'_> {
    /// The parameters by name: all of them, and no others.
    fn named<const N: usize>(&self, names: [&str; N]) -> Result<[f64; N], Mistake> {
        let Parameters { node, example, .. } = *self;
        let NodeKind::Document(entries) = &node.kind else {
            return Err(node.misfit(format!("`{example}`")).suggest(Some(example)));
        };
        if let Some(unknown) = entries.iter().find(|entry| !names.contains(&entry.key.as_str())) {
            let found = format!("the parameter `{}`", shortened(&unknown.key));
            let mistake =
                Mistake::new(unknown.offset, Kind::UnknownName, found, format!("`{example}`"));
            return Err(mistake.suggest(nearest(&unknown.key, names)));
        }
        let mut values = [0.0; N];
        for (value, name) in values.iter_mut().zip(names) {
            let entry = entries.iter().find(|entry| entry.key == name).ok_or_else(|| {
                let found = format!("a law without `{name}`");
                Mistake::new(node.offset, Kind::Missing, found, format!("`{name}`"))
                    .suggest(Some(example))
            })?;
            *value = double(&entry.value, &format!("a number as `{name}`"))?;
        }
        Ok(values)
    }

    /// Refuses a value that is not above 0.
    fn positive(&self, name: &str, value: f64) -> Result<f64, Mistake> {
        if value > 0.0 {
            return Ok(value);
        }
        let found = format!("{value} as {name}");
        Err(Mistake::new(self.node.offset, Kind::Range, found, "a number above 0"))
    }

    fn exponent(&self) -> Result<f64, Mistake> {
        self.positive("exponent", double(self.node, "an exponent such as 0.99")?)
    }
}

fn zipf(given: &Parameters<'_>) -> Result<Law, Mistake> {
    Ok(Law::Zipf { exponent: given.exponent()? })
}

fn latest(given: &Parameters<'_>) -> Result<Law, Mistake> {
    Ok(Law::Latest { exponent: given.exponent()? })
}

fn hotspot(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let [data, draws] = given.named(["data", "draws"])?;
    for (name, share) in [("data", data), ("draws", draws)] {
        number_in(given.node, share, 0.0, 1.0, name)?;
    }
    Ok(Law::Hotspot { data: given.positive("data", data)?, draws })
}

fn nurand(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let [a, c] = given.named(["a", "c"])?;
    // Doubles hold these integers exactly.
    number_in(given.node, a, 1.0, 9e15, "a")?;
    number_in(given.node, c, 0.0, a, "c")?;
    if a.fract() != 0.0 || c.fract() != 0.0 {
        let expected = "integers as `a` and `c`";
        return Err(Mistake::new(given.node.offset, Kind::Form, "a fraction", expected));
    }
    Ok(Law::NuRand { a: a as u64, c: c as u64 })
}

fn normal(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let [mean, sd] = given.named(["mean", "sd"])?;
    Ok(Law::Normal { mean, sd: given.positive("sd", sd)? })
}

fn lognormal(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let [mu, sigma] = given.named(["mu", "sigma"])?;
    Ok(Law::LogNormal { mu, sigma: given.positive("sigma", sigma)? })
}

fn exponential(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let [mean] = given.named(["mean"])?;
    Ok(Law::Exponential { mean: given.positive("mean", mean)? })
}

fn geometric(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let probability = probability(given.node)?;
    Ok(Law::Geometric { probability: given.positive("probability", probability)? })
}

fn poisson(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let mean = double(given.node, "a mean such as 4")?;
    Ok(Law::Poisson { mean: given.positive("mean", mean)? })
}

fn histogram(given: &Parameters<'_>) -> Result<Law, Mistake> {
    let node = given.node;
    let (mut values, mut weights) = (Vec::new(), Vec::new());
    if let NodeKind::Text(file) = &node.kind {
        for line in lines(given.read_file, node, file)? {
            let (value, weight) = value_and_weight(&line).ok_or_else(|| {
                let found = format!("`{}` in `{file}`", shortened(&line));
                Mistake::new(node.offset, Kind::File, found, "an integer and a weight in each line")
            })?;
            values.push(value);
            weights.push(weight);
        }
    } else {
        for bin in list(node, "a list such as `[[1, 5], [10, 95]]`, or the name of a file")? {
            const EXPECTED: &str = "a value and its weight: `[1, 5]`";
            let [value, weight] = list(bin, EXPECTED)? else { return Err(bin.misfit(EXPECTED)) };
            values.push(integer(value, "an integer")?);
            weights.push(double(weight, "a weight")?);
        }
    }
    check_weights(node, &weights)?;
    Ok(Law::Histogram { values, weights })
}

fn value_and_weight(line: &str) -> Option<(i64, f64)> {
    let (value, weight) = line.trim().split_once(char::is_whitespace)?;
    let weight: f64 = weight.trim().parse().ok()?;
    weight.is_finite().then_some((value.parse().ok()?, weight))
}

/// Refuses negative weights, and weights that are all 0.
pub(super) fn check_weights(node: &Node, weights: &[f64]) -> Result<(), Mistake> {
    if let Some(negative) = weights.iter().find(|weight| **weight < 0.0) {
        let found = format!("the weight {negative}");
        return Err(Mistake::new(node.offset, Kind::Range, found, "weights from 0"));
    }
    let sum: f64 = weights.iter().sum();
    if sum > 0.0 && sum.is_finite() {
        return Ok(());
    }
    let found = if weights.is_empty() {
        "no weight".to_owned()
    } else {
        format!("weights with the sum {sum}")
    };
    Err(Mistake::new(node.offset, Kind::Range, found, "a sum above 0"))
}
