//! Settings of all knobs, by the numbers of their values.

use dyno_record::experiment::Knob;
use rand::{Rng, RngExt};

/// The value number of each knob.
pub type Setting = Vec<usize>;

/// Position of a value between 0 and 1 on the scale of its knob. Values are equidistant.
pub(super) fn position(knob: &Knob, value: usize) -> f64 {
    let last = knob.values.len().saturating_sub(1).max(1);
    value as f64 / last as f64
}

/// The squared distance of two values: by their positions, or 1 for different values without an order.
pub(super) fn squared_distance(knob: &Knob, one: usize, other: usize) -> f64 {
    if knob.ordered {
        (position(knob, one) - position(knob, other)).powi(2)
    } else {
        f64::from(u8::from(one != other))
    }
}

/// The setting with all defaults.
pub fn defaults(knobs: &[Knob]) -> Setting {
    knobs.iter().map(Knob::default_place).collect()
}

/// Settings spread over the space: the values of each knob are used equally often, in random order (Latin
/// hypercube: McKay, Beckman, Conover, *Technometrics* 21, 1979).
pub(super) fn spread(knobs: &[Knob], count: usize, random: &mut impl Rng) -> Vec<Setting> {
    let mut settings = vec![Vec::with_capacity(knobs.len()); count];
    for knob in knobs {
        let mut strata: Vec<usize> = (0..count).collect();
        shuffle(&mut strata, random);
        for (setting, stratum) in settings.iter_mut().zip(strata) {
            let place = (stratum as f64 + random.random::<f64>()) / count as f64;
            let value = (place * knob.values.len() as f64) as usize;
            setting.push(value.min(knob.values.len() - 1));
        }
    }
    settings
}

fn shuffle(values: &mut [usize], random: &mut impl Rng) {
    for end in (1..values.len()).rev() {
        values.swap(end, random.random_range(0..=end));
    }
}

/// A random setting.
pub(super) fn any(knobs: &[Knob], random: &mut impl Rng) -> Setting {
    let value = |knob: &Knob| random.random_range(0..knob.values.len());
    knobs.iter().map(value).collect()
}

/// All settings that differ from this one in one knob.
pub(super) fn neighbours<'a>(
    knobs: &'a [Knob],
    setting: &'a Setting,
) -> impl Iterator<Item = Setting> + 'a {
    knobs.iter().enumerate().flat_map(move |(place, knob)| {
        let others = (0..knob.values.len()).filter(move |value| *value != setting[place]);
        others.map(move |value| {
            let mut other = setting.clone();
            other[place] = value;
            other
        })
    })
}
