//! A server with eight settings of known effect: results of a search can be compared with the true optimum.

/// A setting of the simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceSetting {
    /// Number of its values; ordered values are equidistant.
    pub values: usize,
    /// Index of the default value.
    pub default: usize,
    /// Whether its values have an order.
    pub is_ordered: bool,
}

/// The settings. The first, fourth and sixth have an effect.
pub const SURFACE: [SurfaceSetting; 8] = {
    let ordered = SurfaceSetting { values: 9, default: 4, is_ordered: true };
    let mut all = [ordered; 8];
    all[1].default = 3;
    all[5] = SurfaceSetting { values: 2, default: 0, is_ordered: false };
    all
};

/// Indexes of the settings with an effect.
pub const EFFECTIVE: [usize; 3] = [0, 3, 5];

/// Service time of an operation with these values, given by index. The first and fourth setting have a joint effect.
pub fn service_time(values: &[usize]) -> f64 {
    let place = |setting: usize| values[setting] as f64 / (SURFACE[setting].values - 1) as f64;
    let (first, second) = (place(0) - 0.9, place(3) - 0.1);
    let third = if values[5] == 0 { 0.18 } else { 0.0 };
    1.0 + 1.5 * first * first + 1.2 * second * second + 0.8 * first * second + third
}

/// The shortest service time of all values.
pub fn shortest_service_time() -> f64 {
    let mut values = SURFACE.map(|setting| setting.default);
    values[5] = 1;
    let mut shortest = f64::INFINITY;
    for first in 0..SURFACE[0].values {
        for second in 0..SURFACE[3].values {
            (values[0], values[3]) = (first, second);
            shortest = shortest.min(service_time(&values));
        }
    }
    shortest
}
