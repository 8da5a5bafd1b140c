//! Avoided regions of the search: settings that went wrong indicate regions where others would.
//!
//! A server is usually harmed by too much or too little of one thing, sometimes of two together (a large cache
//! and many connections). So each setting that went wrong is explained by each knob, and by each pair, at
//! values that no good setting reached or exceeded. A knob with little known beyond the good settings
//! explains more than one that is nearly completely known to be good. A setting is avoided if it probably
//! shares the explanation of a failure.

use super::space::{Setting, position};
use dyno_record::experiment::Knob;

/// Highest failure probability of settings that are still tried: after one failure, after two, and after more.
/// The first failure leaves its reason open, and finding it is worth a second one.
const MOST_RISKS: [f64; 3] = [0.3, 0.15, 0.05];
/// Weight of a knob pair's explanation relative to a single knob.
const PAIR: f64 = 0.25;
/// Weight of an explanation that also explains another failure.
const AGAIN: f64 = 4.0;

/// Settings that went well and settings that went wrong.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    knobs: Vec<Knob>,
    well: Vec<Setting>,
    wrong: Vec<Setting>,
}

/// A value of a knob and its failing side.
#[derive(Clone, Copy)]
struct Side {
    place: usize,
    value: usize,
    /// Whether larger values fail as well; otherwise smaller ones. Without an order only this value fails.
    is_upper: bool,
}

impl Limits {
    pub(super) fn new(knobs: &[Knob]) -> Limits {
        Limits { knobs: knobs.to_vec(), well: Vec::new(), wrong: Vec::new() }
    }

    pub(super) fn went(&mut self, setting: &Setting, is_well: bool) {
        if is_well {
            self.well.push(setting.clone());
            return;
        }
        // Its earlier results no longer count.
        self.well.retain(|one| one != setting);
        self.wrong.push(setting.clone());
    }

    /// Whether exactly this setting went wrong.
    pub(super) fn has_failed(&self, setting: &Setting) -> bool {
        self.wrong.contains(setting)
    }

    /// Probability that the setting goes wrong; `None` if it is too high to try the setting.
    pub(super) fn risk(&self, setting: &Setting) -> Option<f64> {
        let risks = self.wrong.iter().map(|wrong| self.risk_as(setting, wrong));
        let risk = risks.fold(0.0, f64::max);
        let Some(last) = self.wrong.len().checked_sub(1) else {
            return Some(risk);
        };
        (risk <= MOST_RISKS[last.min(MOST_RISKS.len() - 1)]).then_some(risk)
    }

    /// Probability that the setting fails for the same reason as `wrong`.
    fn risk_as(&self, setting: &Setting, wrong: &Setting) -> f64 {
        let sides = self.sides(wrong);
        let one = sides.iter().map(|side| (vec![*side], 1.0));
        let two = sides.iter().enumerate().flat_map(|(place, side)| {
            let others = sides[place + 1..].iter().filter(|other| other.place != side.place);
            others.map(|other| (vec![*side, *other], PAIR))
        });
        let (mut all, mut risk) = (0.0, 0.0);
        for (sides, weight) in one.chain(two) {
            let weight = weight * self.weight(&sides);
            all += weight;
            risk += weight * self.share(&sides, setting);
        }
        match all > 0.0 {
            true => risk / all,
            // An unexplained failure applies to this setting alone.
            false => f64::from(u8::from(setting == wrong)),
        }
    }

    fn sides(&self, wrong: &Setting) -> Vec<Side> {
        let both = wrong.iter().enumerate().flat_map(|(place, value)| {
            let side = move |is_upper| Side { place, value: *value, is_upper };
            [Some(side(true)), self.knobs[place].ordered.then(|| side(false))]
        });
        both.flatten().collect()
    }

    /// Unknown share of the knobs between good settings and the failure; 0 if a setting was good there.
    fn weight(&self, sides: &[Side]) -> f64 {
        let explains =
            |setting: &Setting| sides.iter().all(|side| self.is_on(side, setting[side.place]));
        if self.well.iter().any(explains) {
            return 0.0;
        }
        let unknown: f64 = sides.iter().map(|side| self.unknown(sides, side)).product();
        let failures = self.wrong.iter().filter(|wrong| explains(wrong)).count();
        unknown * AGAIN.powi(failures as i32 - 1)
    }

    fn is_on(&self, side: &Side, value: usize) -> bool {
        match (self.knobs[side.place].ordered, side.is_upper) {
            (false, _) => value == side.value,
            (true, true) => value >= side.value,
            (true, false) => value <= side.value,
        }
    }

    fn unknown(&self, sides: &[Side], side: &Side) -> f64 {
        let knob = &self.knobs[side.place];
        if !knob.ordered {
            return 0.5;
        }
        let failed = position(knob, side.value);
        match self.nearest(sides, side) {
            Some(nearest) => (position(knob, nearest) - failed).abs(),
            None if side.is_upper => failed,
            None => 1.0 - failed,
        }
    }

    /// The outermost good value, with values of the other sides that explain nothing by themselves.
    fn nearest(&self, sides: &[Side], side: &Side) -> Option<usize> {
        let others = |setting: &&Setting| {
            let mut others = sides.iter().filter(|other| other.place != side.place);
            others.all(|other| self.is_on(other, setting[other.place]))
        };
        let values = self.well.iter().filter(others).map(|setting| setting[side.place]);
        if side.is_upper { values.max() } else { values.min() }
    }

    /// Distance of the setting beyond the good ones, relative to the failure's distance.
    fn share(&self, sides: &[Side], setting: &Setting) -> f64 {
        let one = |side: &Side| {
            let value = setting[side.place];
            if self.is_on(side, value) {
                return 1.0;
            }
            let knob = &self.knobs[side.place];
            let Some(nearest) = self.nearest(sides, side).filter(|_| knob.ordered) else {
                return 0.0;
            };
            let [at, good, failed] =
                [value, nearest, side.value].map(|value| position(knob, value));
            let ratio = (at - good) / (failed - good);
            if ratio.is_finite() { ratio.clamp(0.0, 1.0) } else { 0.0 }
        };
        sides.iter().map(one).product()
    }
}
