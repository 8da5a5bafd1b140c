//! Simulated queueing systems with known parameters: results of the analysis can be compared with the true values.
//!
//! A system is a source of operations (an open Poisson stream, or clients with think time) and stations that each
//! operation visits in order. Every station serves first come, first served, with one or more servers. The simulation
//! is event-driven; rates, times in the system, busy times and the number in the system are counted independently, as
//! in a real measurement.

mod engine;
mod noise;
mod surface;

pub use engine::simulate;
pub use noise::{NoisyRatio, autoregressive, noisy_pairs, normal};
pub use surface::{EFFECTIVE, SURFACE, SurfaceSetting, service_time, shortest_service_time};

/// Source of operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// A Poisson stream that does not wait for answers.
    Open { rate_per_s: f64 },
    /// Clients that wait for the answer, think, and ask again.
    Closed {
        clients: u32,
        /// Time between an answer and a client's next request.
        think: Service,
    },
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Mean in seconds.
    Exponential(f64),
    /// Constant time in seconds.
    Constant(f64),
}

impl Service {
    /// Mean in seconds.
    pub fn mean_s(self) -> f64 {
        match self {
            Service::Exponential(mean_s) | Service::Constant(mean_s) => mean_s,
        }
    }
}

/// A station that every operation visits once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Operations served at a time; `u32::MAX` makes it a pure delay.
    pub servers: u32,
    pub service: Service,
}

/// A system and its observed window.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    pub source: Source,
    /// Stations in the order of visits.
    pub stations: Vec<Station>,
    /// Simulated time before the window, not counted.
    pub warm_up_s: f64,
    pub window_s: f64,
}

/// One operation that ended inside the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completion {
    /// End, relative to the start of the window.
    pub end_s: f64,
    /// From its arrival to its end, in seconds.
    pub response_s: f64,
}

/// Counts of the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub window_s: f64,
    /// Operations in the order of their ends.
    pub completions: Vec<Completion>,
    /// Busy time inside the window for each station, summed over its servers.
    pub busy_s: Vec<f64>,
    /// Time inside the window in which each station had any operation: for a disk, the kernel's busy time.
    pub occupied_s: Vec<f64>,
    /// Time average of the number of operations at each station, including waiting ones.
    pub mean_present: Vec<f64>,
    /// Services that ended inside the window, by station.
    pub served: Vec<u64>,
    /// Time average of the number of operations in the stations, without thinking clients.
    pub mean_in_flight: f64,
}

impl Observation {
    /// Completions per second.
    pub fn rate_per_s(&self) -> f64 {
        self.completions.len() as f64 / self.window_s
    }

    /// Mean response time in seconds; NaN without completions.
    pub fn mean_response_s(&self) -> f64 {
        let sum: f64 = self.completions.iter().map(|done| done.response_s).sum();
        sum / self.completions.len() as f64
    }

    /// The response time that this share of the completions does not exceed; `quantile` is between 0 and 1. NaN without
    /// completions.
    pub fn response_quantile_s(&self, quantile: f64) -> f64 {
        let mut times: Vec<f64> = self.completions.iter().map(|done| done.response_s).collect();
        times.sort_by(f64::total_cmp);
        let rank = (quantile * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
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
