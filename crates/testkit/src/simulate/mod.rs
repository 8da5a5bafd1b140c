//! Simulated queueing systems, whose true parameters are known: what the analysis says about their
//! measurements can be compared with the truth.
//!
//! A system is a source of operations (an open Poisson stream, or clients that think) and stations
//! that each operation visits in order. Every station serves first come, first served, with one or
//! more servers. The simulation is driven by events; rates, times in the system, busy times and the
//! number in the system are counted apart from each other, as a real measurement counts them.

mod engine;
mod noise;
mod surface;

pub use engine::simulate;
pub use noise::{NoisyRatio, autoregressive, noisy_pairs, normal};
pub use surface::{EFFECTIVE, SURFACE, SurfaceSetting, service_time, shortest_service_time};

/// Where operations come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// A Poisson stream that does not wait for answers.
    Open {
        /// Mean arrivals per second.
        rate_per_s: f64,
    },
    /// Clients that each wait for the answer, think, and ask again.
    Closed {
        /// Number of clients.
        clients: u32,
        /// Time between an answer and the next question of a client.
        think: Service,
    },
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Exponential with this mean, in seconds.
    Exponential(f64),
    /// Always this long, in seconds.
    Constant(f64),
}

impl Service {
    /// The mean, in seconds.
    pub fn mean_s(self) -> f64 {
        match self {
            Service::Exponential(mean_s) | Service::Constant(mean_s) => mean_s,
        }
    }
}

/// A station that every operation visits once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Operations that it serves at a time; `u32::MAX` makes it a pure delay.
    pub servers: u32,
    /// Time of one service.
    pub service: Service,
}

/// A system and the window in which it is watched.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Where operations come from.
    pub source: Source,
    /// The stations in the order they are visited.
    pub stations: Vec<Station>,
    /// Simulated time before the window, not counted.
    pub warm_up_s: f64,
    /// Length of the window.
    pub window_s: f64,
}

/// One operation that ended inside the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completion {
    /// When it ended, from the start of the window.
    pub end_s: f64,
    /// From its arrival to its end, in seconds.
    pub response_s: f64,
}

/// What was counted in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Length of the window.
    pub window_s: f64,
    /// Operations in the order they ended.
    pub completions: Vec<Completion>,
    /// Time that the servers of each station were busy inside the window, summed over its servers.
    pub busy_s: Vec<f64>,
    /// Time inside the window in which each station had any operation: of a disk, the time that the kernel calls busy.
    pub occupied_s: Vec<f64>,
    /// Time average of the number of operations at each station, those that wait among them.
    pub mean_present: Vec<f64>,
    /// Services of each station that ended inside the window.
    pub served: Vec<u64>,
    /// Time average of the number of operations in the stations (those who think are not).
    pub mean_in_flight: f64,
}

impl Observation {
    /// Completions per second.
    pub fn rate_per_s(&self) -> f64 {
        self.completions.len() as f64 / self.window_s
    }

    /// Mean response time in seconds; NaN when nothing ended.
    pub fn mean_response_s(&self) -> f64 {
        let sum: f64 = self.completions.iter().map(|done| done.response_s).sum();
        sum / self.completions.len() as f64
    }

    /// The response time that this share of the completions does not exceed; `quantile` is between
    /// 0 and 1. NaN when nothing ended.
    pub fn response_quantile_s(&self, quantile: f64) -> f64 {
        let mut times: Vec<f64> = self
            .completions
            .iter()
            .map(|done| done.response_s)
            .collect();
        times.sort_by(f64::total_cmp);
        let rank = (quantile * times.len() as f64).ceil() as usize;
        times
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// Response times of the completions in each of `count` equal parts of the window.
    pub fn response_by_interval(&self, count: usize) -> Vec<Vec<f64>> {
        let mut intervals = vec![Vec::new(); count];
        for done in &self.completions {
            let index = (done.end_s / self.window_s * count as f64) as usize;
            intervals[index.min(count - 1)].push(done.response_s);
        }
        intervals
    }
}
