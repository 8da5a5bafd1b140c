//! Parameters, their values, and settings of all parameters.

use rand::{Rng, RngExt};

/// A parameter that may be changed. The caller knows its values; the search knows only their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Position of each value between 0 and 1 on the parameter's scale, ascending; `None` if the values have no
    /// order. At least two values.
    pub places: Option<Vec<f64>>,
    pub values: usize,
    /// Number of the default value.
    pub default: usize,
}

impl Parameter {
    /// A parameter with equidistant values in order.
    pub fn ordered(values: usize, default: usize) -> Parameter {
        let last = values.saturating_sub(1).max(1) as f64;
        Parameter {
            places: Some((0..values).map(|value| value as f64 / last).collect()),
            values,
            default,
        }
    }

    /// A parameter whose values have no order.
    pub fn choice(values: usize, default: usize) -> Parameter {
        Parameter { places: None, values, default }
    }

    /// The squared distance of two values: by their positions, or 1 for different values without an order.
    pub(super) fn squared_distance(&self, one: usize, other: usize) -> f64 {
        match &self.places {
            Some(places) => (places[one] - places[other]).powi(2),
            None => f64::from(u8::from(one != other)),
        }
    }
}

/// The value number of each parameter.
pub type Setting = Vec<usize>;

/// The setting with all defaults.
pub fn defaults(parameters: &[Parameter]) -> Setting {
    parameters.iter().map(|one| one.default).collect()
}

/// Settings spread over the space: the values of each parameter are used equally often, in random order (Latin
/// hypercube: McKay, Beckman, Conover, *Technometrics* 21, 1979).
pub(super) fn spread(
    parameters: &[Parameter],
    count: usize,
    random: &mut impl Rng,
) -> Vec<Setting> {
    let mut settings = vec![Vec::with_capacity(parameters.len()); count];
    for parameter in parameters {
        let mut strata: Vec<usize> = (0..count).collect();
        shuffle(&mut strata, random);
        for (setting, stratum) in settings.iter_mut().zip(strata) {
            let place = (stratum as f64 + random.random::<f64>()) / count as f64;
            let value = (place * parameter.values as f64) as usize;
            setting.push(value.min(parameter.values - 1));
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
pub(super) fn any(parameters: &[Parameter], random: &mut impl Rng) -> Setting {
    let value = |parameter: &Parameter| random.random_range(0..parameter.values);
    parameters.iter().map(value).collect()
}

/// All settings that differ from this one in one parameter.
pub(super) fn neighbours<'a>(
    parameters: &'a [Parameter],
    setting: &'a Setting,
) -> impl Iterator<Item = Setting> + 'a {
    parameters.iter().enumerate().flat_map(move |(place, parameter)| {
        let others = (0..parameter.values).filter(move |value| *value != setting[place]);
        others.map(move |value| {
            let mut other = setting.clone();
            other[place] = value;
            other
        })
    })
}
