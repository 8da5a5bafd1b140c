//! Exact samplers of the laws, over ranges of any size.
//!
//! A law that can leave its range draws again at most [`MAX_REDRAWS`] times and then takes the nearest end of the range.

use super::stream::Draws;
use super::zipf::Zipf;
use crate::keys::Permutation;
use dyno_plan::workload::template;
use rand::RngExt;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Exp, Geometric, LogNormal, Normal, Poisson};

/// Draws outside of the range before a value is clamped. A range that holds a tenth of the law is missed once in 800.
pub(super) const MAX_REDRAWS: u32 = 64;

/// Why a law has no sampler.
pub(super) type Reason = &'static str;

/// The sampler of a law, for any range.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    Uniform,
    Zipf(Zipf),
    /// Zipf from the last rank down.
    Latest(Zipf),
    Hotspot {
        data: f64,
        draws: f64,
    },
    Sequential,
    NuRand {
        a: u64,
        c: u64,
    },
    Normal(Normal<f64>),
    LogNormal(LogNormal<f64>),
    /// Distance from the lower end.
    Exponential(Exp<f64>),
    Geometric(Geometric),
    Poisson(Poisson<f64>),
    Histogram {
        values: Box<[i64]>,
        places: WeightedAliasIndex<f64>,
    },
}

/// A range of integers: `min`, and the rank of its last value. So a range may hold all 2^64 values.
#[derive(Clone, Copy, Debug)]
struct Ranks {
    min: i64,
    last: u64,
}

impl Ranks {
    /// Both ends included; `min` is at most `max`.
    fn between(min: i64, max: i64) -> Self {
        Ranks { min, last: max.wrapping_sub(min) as u64 }
    }

    fn max(self) -> i64 {
        self.value(self.last)
    }

    #[inline]
    fn value(self, rank: u64) -> i64 {
        // Two's complement: the sum is right whenever the rank is in the range.
        self.min.wrapping_add(rank as i64)
    }

    fn holds(self, value: f64) -> bool {
        value >= self.min as f64 && value <= self.max() as f64
    }
}

impl Sampler {
    /// The sampler of `law`. `last` is the usual last rank, for which the sampler is prepared.
    pub(super) fn new(law: &template::Law, last: u64) -> Result<Self, Reason> {
        use template::Law;
        let zipf = |exponent| Zipf::new(exponent, last).ok_or("the exponent is not above 0");
        Ok(match *law {
            Law::Uniform => Sampler::Uniform,
            Law::Zipf { exponent } => Sampler::Zipf(zipf(exponent)?),
            Law::Latest { exponent } => Sampler::Latest(zipf(exponent)?),
            Law::Hotspot { data, draws } => {
                if !(data > 0.0 && data <= 1.0 && (0.0..=1.0).contains(&draws)) {
                    return Err("a share is not between 0 and 1");
                }
                Sampler::Hotspot { data, draws }
            }
            Law::Sequential => Sampler::Sequential,
            Law::NuRand { a, c } => Sampler::NuRand { a, c },
            Law::Normal { mean, sd } => {
                Sampler::Normal(finite(Normal::new(mean, sd), &[mean, sd])?)
            }
            Law::LogNormal { mu, sigma } => {
                Sampler::LogNormal(finite(LogNormal::new(mu, sigma), &[mu, sigma])?)
            }
            Law::Exponential { mean } => {
                let rate = mean.recip();
                Sampler::Exponential(finite(Exp::new(rate), &[mean, rate])?)
            }
            Law::Geometric { probability } => {
                if probability <= 0.0 {
                    return Err("the probability is not above 0");
                }
                Sampler::Geometric(finite(Geometric::new(probability), &[probability])?)
            }
            Law::Poisson { mean } => Sampler::Poisson(finite(Poisson::new(mean), &[mean])?),
            Law::Histogram { ref values, ref weights } => histogram(values, weights)?,
        })
    }

    /// Draws an integer. `number` is the place in the order of a sequential law.
    #[inline]
    fn integer(&self, ranks: Ranks, number: u64, draws: &mut Draws) -> i64 {
        match self {
            Sampler::Uniform => ranks.value(draws.random_range(0..=ranks.last)),
            Sampler::Zipf(zipf) => ranks.value(zipf.rank(ranks.last, draws)),
            Sampler::Latest(zipf) => ranks.value(ranks.last - zipf.rank(ranks.last, draws)),
            Sampler::Hotspot { data, draws: share } => {
                ranks.value(hotspot(*data, *share, ranks.last, draws))
            }
            Sampler::Sequential => {
                let count = ranks.last.checked_add(1);
                ranks.value(count.map_or(number, |count| number % count))
            }
            Sampler::NuRand { a, c } => nurand(*a, *c, ranks, draws),
            Sampler::Normal(law) => nearest(ranks, || law.sample(draws)),
            Sampler::LogNormal(law) => nearest(ranks, || law.sample(draws)),
            Sampler::Exponential(law) => {
                ranks.value(rank_up_to(ranks.last, || law.sample(draws) as u64))
            }
            Sampler::Geometric(law) => ranks.value(rank_up_to(ranks.last, || law.sample(draws))),
            Sampler::Poisson(law) => {
                ranks.value(rank_up_to(ranks.last, || law.sample(draws) as u64))
            }
            Sampler::Histogram { values, places } => {
                let (min, max) = (ranks.min, ranks.max());
                let inside = |value: &i64| (min..=max).contains(value);
                let mut draw = || values[places.sample(draws)];
                redrawn(inside, &mut draw).clamp(min, max)
            }
        }
    }

    /// Whether the law has a density over real numbers, see [`real`](Self::real).
    pub(super) fn is_continuous(&self) -> bool {
        use Sampler::{Exponential, Hotspot, LogNormal, Normal, Uniform};
        matches!(self, Uniform | Hotspot { .. } | Normal(_) | LogNormal(_) | Exponential(_))
    }

    /// Whether the law is about ranks, with the first ranks most frequent. Other laws are about the values themselves: their
    /// parameters name values (normal, lognormal, poisson, histogram), their order has a meaning (latest, sequential), or they
    /// define the frequent values (nurand).
    fn ranks_by_frequency(&self) -> bool {
        use Sampler::{Exponential, Geometric, Hotspot, Zipf};
        matches!(self, Zipf(_) | Hotspot { .. } | Exponential(_) | Geometric(_))
    }

    /// Draws a real number between the ends of a range, by a continuous law.
    #[inline]
    pub(super) fn real(&self, min: f64, max: f64, draws: &mut Draws) -> f64 {
        let inside = |value: &f64| (min..=max).contains(value);
        let value = match self {
            Sampler::Normal(law) => redrawn(inside, &mut || law.sample(draws)),
            Sampler::LogNormal(law) => redrawn(inside, &mut || law.sample(draws)),
            Sampler::Exponential(law) => redrawn(inside, &mut || min + law.sample(draws)),
            Sampler::Hotspot { data, draws: share } => {
                let hot = draws.happens(*share) || *data >= 1.0;
                let place: f64 = draws.random();
                let place = if hot { place * data } else { data + place * (1.0 - data) };
                interpolated(min, max, place)
            }
            _ => interpolated(min, max, draws.random()),
        };
        value.clamp(min, max)
    }
}

/// The value at a share of the range. Both products are finite even if the width of the range is not.
#[inline]
fn interpolated(min: f64, max: f64, share: f64) -> f64 {
    min * (1.0 - share) + max * share
}

fn finite<T, E>(law: Result<T, E>, parameters: &[f64]) -> Result<T, Reason> {
    match law {
        Ok(law) if parameters.iter().all(|parameter| parameter.is_finite()) => Ok(law),
        _ => Err("a parameter is outside of its range"),
    }
}

fn histogram(values: &[i64], weights: &[f64]) -> Result<Sampler, Reason> {
    if values.len() != weights.len() {
        return Err("values and weights differ in number");
    }
    Ok(Sampler::Histogram { values: values.into(), places: alias_table(weights)? })
}

/// A table from which places are drawn by weight (Vose's alias method).
pub(super) fn alias_table(weights: &[f64]) -> Result<WeightedAliasIndex<f64>, Reason> {
    let reason = "weights must be finite and not negative, and their sum positive";
    WeightedAliasIndex::new(weights.to_vec()).map_err(|_| reason)
}

/// The first draw that is `inside`, or the last one of a bounded number.
#[inline]
fn redrawn<T>(inside: impl Fn(&T) -> bool, draw: &mut impl FnMut() -> T) -> T {
    let mut value = draw();
    for _ in 0..MAX_REDRAWS {
        if inside(&value) {
            break;
        }
        value = draw();
    }
    value
}

/// A rank that may exceed the range.
#[inline]
fn rank_up_to(last: u64, mut draw: impl FnMut() -> u64) -> u64 {
    redrawn(|&rank| rank <= last, &mut draw).min(last)
}

/// A real number of any size, rounded to the nearest integer of the range.
#[inline]
fn nearest(ranks: Ranks, mut draw: impl FnMut() -> f64) -> i64 {
    let value = redrawn(|&value| ranks.holds(value), &mut || draw().round());
    // `as` saturates, and the ends of a large range are not exact as `f64`.
    (value as i64).clamp(ranks.min, ranks.max())
}

/// The hot set is rounded down as in YCSB, but holds at least one rank.
#[inline]
fn hotspot(data: f64, share: f64, last: u64, draws: &mut Draws) -> u64 {
    let hot = ((last as f64 + 1.0) * data) as u64;
    let last_hot = hot.saturating_sub(1).min(last);
    if draws.happens(share) || last_hot == last {
        draws.random_range(0..=last_hot)
    } else {
        draws.random_range(last_hot + 1..=last)
    }
}

/// TPC-C 5.11, clause 2.1.6: NURand(A, x, y) = (((random(0, A) | random(x, y)) + C) mod (y − x + 1)) + x.
#[inline]
fn nurand(a: u64, c: u64, ranks: Ranks, draws: &mut Draws) -> i64 {
    let low = draws.random_range(0..=a);
    let value = ranks.value(draws.random_range(0..=ranks.last));
    let sum = i128::from(low) | i128::from(value);
    let rank = (sum + i128::from(c)).rem_euclid(i128::from(ranks.last) + 1);
    ranks.value(rank as u64)
}

/// A law over a range of integers.
#[derive(Clone, Debug)]
pub(super) struct IntegerLaw {
    ranks: Ranks,
    sampler: Sampler,
}

impl IntegerLaw {
    /// Both ends included; `min` is at most `max`.
    pub(super) fn new(law: &template::Law, min: i64, max: i64) -> Result<Self, Reason> {
        let ranks = Ranks::between(min, max);
        if let template::Law::Histogram { values, .. } = law
            && !values.iter().any(|value| (min..=max).contains(value))
        {
            return Err("no value of the histogram is in the range");
        }
        Ok(IntegerLaw { ranks, sampler: Sampler::new(law, ranks.last)? })
    }

    /// Draws a value. `number` is the place in the order of a sequential law.
    #[inline]
    pub(super) fn draw(&self, number: u64, draws: &mut Draws) -> i64 {
        if self.ranks.last == 0 {
            self.ranks.min
        } else {
            self.sampler.integer(self.ranks, number, draws)
        }
    }
}

/// A law over the documents of a collection.
///
/// Laws about ranks scatter the frequent documents over the collection, as they are in real data: the first documents are
/// neighbours in the collection and in its indexes, so that few pages would hold all that are hot.
#[derive(Clone, Debug)]
pub(super) struct DocumentLaw {
    sampler: Sampler,
    /// The document of each rank, for laws about ranks.
    order: Option<Permutation>,
}

impl DocumentLaw {
    /// Over `records` loaded documents. All laws with the same `key` scatter in the same order.
    pub(super) fn new(law: &template::Law, records: u64, key: u64) -> Result<Self, Reason> {
        let sampler = Sampler::new(law, records.saturating_sub(1))?;
        let is_scattered = records > 0 && sampler.ranks_by_frequency();
        let order = is_scattered.then(|| Permutation::with_key(records, key));
        Ok(DocumentLaw { sampler, order })
    }

    /// Draws one of the documents up to `last`, which are the loaded ones at least. The ranks of later documents are their numbers:
    /// the order must not change while the collection grows, or other documents became hot. `number` is the place in the
    /// order of a sequential law.
    #[inline]
    pub(super) fn draw(&self, last: u64, number: u64, draws: &mut Draws) -> u64 {
        let rank = self.sampler.integer(Ranks { min: 0, last }, number, draws) as u64;
        match &self.order {
            Some(order) if rank < order.count() => order.at(rank),
            _ => rank,
        }
    }
}

#[cfg(test)]
mod tests;
