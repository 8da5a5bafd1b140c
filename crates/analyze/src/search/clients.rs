//! Searches the number of clients with the highest rate in a closed loop, for X_max.
//!
//! The number of clients doubles until the rate has not grown by `GAIN_RATIO` for two
//! doublings in a row. Then the geometric middles on both sides of the best number are tried, until its
//! neighbours are within `NEIGHBOUR_RATIO`. The best number is measured once more; if it is
//! still the best by its mean, it is elected.
//!
//! The best of many noisy numbers is too good, so the measurements that elected a number do not count for the
//! reported rate, which is the mean of [`ClientsSettings::repeats`] new measurements.

use crate::robust::mean;
use crate::uncertainty::mean::of_repetitions;
use dyno_record::experiment::{ClientsEnd, ClientsResult, TriedClients};
use std::collections::BTreeMap;

/// Smallest relevant growth of the rate, as a share.
const GAIN_RATIO: f64 = 0.03;

/// Ratio of neighbouring numbers of clients at which the search stops; above 1.
const NEIGHBOUR_RATIO: f64 = 1.3;

/// Limits and costs of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientsSettings {
    /// First number of clients, at least 1.
    pub start_clients: u32,
    /// Largest number to try.
    pub max_clients: u32,
    /// New measurements of the elected number; at least 1.
    pub repeats: u32,
    /// The search ends after this many measurements, even without a decision.
    pub max_measurements: u32,
}

impl ClientsSettings {
    /// The default limit of measurements applies to the search; repetitions come on top.
    pub fn for_search(start_clients: u32, max_clients: u32, repeats: u32) -> Self {
        let standard = Self::default();
        let max_measurements = standard.max_measurements + repeats;
        ClientsSettings { start_clients, max_clients, repeats, max_measurements }
    }
}

impl Default for ClientsSettings {
    fn default() -> Self {
        ClientsSettings { start_clients: 1, max_clients: 1024, repeats: 3, max_measurements: 60 }
    }
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientsStep {
    /// Run a closed loop with this many clients, and [record](ClientsSearch::record) its rate.
    Measure { clients: u32 },
    /// The search is over.
    Done(ClientsResult),
}

/// Search for the best number of clients.
#[derive(Clone, Debug)]
pub struct ClientsSearch {
    settings: ClientsSettings,
    tried: BTreeMap<u32, Vec<f64>>,
    measurements: u32,
    elected: Option<Elected>,
}

/// The elected number of clients, and its rates since.
#[derive(Clone, Debug)]
struct Elected {
    clients: u32,
    rates: Vec<f64>,
}

/// Number of measurements after which a number that is still the best is elected.
const VOTES: usize = 2;

impl ClientsSearch {
    /// A search without measurements.
    pub fn new(settings: ClientsSettings) -> ClientsSearch {
        ClientsSearch { settings, tried: BTreeMap::new(), measurements: 0, elected: None }
    }

    /// The next action, the same until a rate is recorded.
    pub fn step(&self) -> ClientsStep {
        let Some((best, _)) = self.best() else {
            let limit = self.settings.max_clients.max(1);
            return ClientsStep::Measure { clients: self.settings.start_clients.clamp(1, limit) };
        };
        let clients = match &self.elected {
            // A decision by the last allowed measurement still counts.
            Some(elected) if elected.rates.len() >= self.settings.repeats.max(1) as usize => {
                return ClientsStep::Done(self.result(elected.clients, self.end()));
            }
            Some(elected) => elected.clients,
            None => self.explored(best).unwrap_or(best),
        };
        if self.measurements < self.settings.max_measurements {
            return ClientsStep::Measure { clients };
        }
        let best = self.elected.as_ref().map_or(best, |one| one.clients);
        ClientsStep::Done(self.result(best, ClientsEnd::OutOfMeasurements))
    }

    /// Records the rate of the measurement that [`Self::step`] requested, in operations per second; no effect
    /// after the end. Values that are not positive numbers count as 0.
    pub fn record(&mut self, rate_per_s: f64) {
        let ClientsStep::Measure { clients } = self.step() else {
            return;
        };
        let rate = if rate_per_s.is_finite() { rate_per_s.max(0.0) } else { 0.0 };
        self.measurements += 1;
        self.tried.entry(clients).or_default().push(rate);
        match &mut self.elected {
            Some(elected) => elected.rates.push(rate),
            None => self.elect(),
        }
    }

    fn elect(&mut self) {
        let best = self.best().map(|(clients, _)| clients);
        let is_found =
            |best: &u32| self.explored(*best).is_none() && self.tried[best].len() >= VOTES;
        self.elected = best.filter(is_found).map(|clients| Elected { clients, rates: Vec::new() });
    }

    /// The next new number of clients to try.
    fn explored(&self, best: u32) -> Option<u32> {
        self.doubled().or_else(|| self.between(best))
    }

    /// The number of clients with the highest mean rate; the smallest one if equal.
    fn best(&self) -> Option<(u32, f64)> {
        let means = self.tried.iter().map(|(clients, rates)| (*clients, mean(rates)));
        means.reduce(|best, other| if other.1 > best.1 { other } else { best })
    }

    /// The next doubling, while doubling pays off.
    fn doubled(&self) -> Option<u32> {
        let largest = *self.tried.keys().next_back()?;
        let has_room = largest < self.settings.max_clients;
        (has_room && self.doublings_without_gain() < 2)
            .then(|| largest.saturating_mul(2).min(self.settings.max_clients))
    }

    /// Number of final doublings that did not raise the best rate before them.
    fn doublings_without_gain(&self) -> usize {
        let (mut best, mut without_gain) = (0.0, 0);
        let mut power = None;
        for (clients, rates) in &self.tried {
            // Numbers between the doublings were chosen later.
            let is_doubling = power.is_none_or(|p: u32| {
                *clients == p.saturating_mul(2).min(self.settings.max_clients)
            });
            if !is_doubling {
                continue;
            }
            power = Some(*clients);
            // Only the first measurement: later ones must not restart the doubling.
            without_gain = if rates[0] > best * (1.0 + GAIN_RATIO) { 0 } else { without_gain + 1 };
            best = rates[0].max(best);
        }
        without_gain
    }

    /// The middle of the wider gap next to the best number, if it is too wide.
    fn between(&self, best: u32) -> Option<u32> {
        let below = self.tried.range(..best).next_back().map(|(n, _)| (*n, best));
        let above = self.tried.range(best + 1..).next().map(|(n, _)| (best, *n));
        let ratio = |gap: &(u32, u32)| f64::from(gap.1) / f64::from(gap.0);
        let wide = [below, above]
            .into_iter()
            .flatten()
            .filter(|gap| ratio(gap) > NEIGHBOUR_RATIO && gap.1 - gap.0 > 1);
        let (low, high) = wide.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
        let middle = (f64::from(low) * f64::from(high)).sqrt().round() as u32;
        Some(middle.clamp(low + 1, high - 1))
    }

    fn end(&self) -> ClientsEnd {
        match self.doublings_without_gain() {
            // A single number shows no growth.
            0 if self.tried.len() > 1 => ClientsEnd::StillGrowing,
            0 | 1 => ClientsEnd::LimitReached,
            _ => ClientsEnd::Plateau,
        }
    }

    fn result(&self, best: u32, end: ClientsEnd) -> ClientsResult {
        let since = self.elected.as_ref().map(|elected| &elected.rates);
        let counted = since.filter(|rates| !rates.is_empty()).unwrap_or(&self.tried[&best]);
        let rate_per_s = mean(counted);
        let enough = |rates: &Vec<f64>| mean(rates) >= rate_per_s * (1.0 - GAIN_RATIO);
        let tried = |(clients, rates): (&u32, &Vec<f64>)| TriedClients {
            clients: *clients,
            rates_per_s: rates.clone(),
        };
        ClientsResult {
            clients: best,
            rate_per_s,
            counted_runs: u32::try_from(counted.len()).unwrap_or(u32::MAX),
            estimate_per_s: of_repetitions(counted),
            enough_clients: self
                .tried
                .iter()
                .find(|(_, rates)| enough(rates))
                .map_or(best, |(n, _)| *n),
            end,
            tried: self.tried.iter().map(tried).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
