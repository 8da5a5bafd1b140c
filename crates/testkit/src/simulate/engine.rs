//! The event loop: arrivals, ends of services and ends of think times, in the order of time.

use super::{Completion, Observation, Service, Source, System};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Simulates `system`; the same seed gives the same observation.
pub fn simulate(system: &System, seed: u64) -> Observation {
    let mut simulation = Simulation::new(system, seed);
    simulation.start();
    simulation.run();
    simulation.observation()
}

/// An operation in the system.
#[derive(Clone, Copy, Debug)]
struct Operation {
    arrival_s: f64,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Arrival,
    /// A server of this station has finished an operation.
    ServiceEnd {
        station: usize,
        operation: Operation,
    },
}

#[derive(Clone, Copy, Debug)]
struct Event {
    time_s: f64,
    /// Orders simultaneous events by the order in which they were planned.
    number: u64,
    happening: Happening,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time_s.total_cmp(&other.time_s).then(self.number.cmp(&other.number))
    }
}

/// State of a station.
struct Place {
    servers: u32,
    busy: u32,
    waiting: VecDeque<Operation>,
    busy_s: f64,
    occupied_s: f64,
    present_integral: f64,
    served: u64,
}

struct Simulation<'a> {
    system: &'a System,
    rng: Xoshiro256PlusPlus,
    events: BinaryHeap<Reverse<Event>>,
    planned: u64,
    now_s: f64,
    end_s: f64,
    places: Vec<Place>,
    in_flight: u64,
    in_flight_integral: f64,
    completions: Vec<Completion>,
}

impl<'a> Simulation<'a> {
    fn new(system: &'a System, seed: u64) -> Self {
        let place = |station: &super::Station| Place {
            servers: station.servers,
            busy: 0,
            waiting: VecDeque::new(),
            busy_s: 0.0,
            occupied_s: 0.0,
            present_integral: 0.0,
            served: 0,
        };
        Self {
            system,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            events: BinaryHeap::new(),
            planned: 0,
            now_s: 0.0,
            end_s: system.warm_up_s + system.window_s,
            places: system.stations.iter().map(place).collect(),
            in_flight: 0,
            in_flight_integral: 0.0,
            completions: Vec::new(),
        }
    }

    fn start(&mut self) {
        match self.system.source {
            Source::Open { .. } => self.plan_arrival(),
            Source::Closed { clients, .. } => (0..clients).for_each(|_| self.plan_arrival()),
        }
    }

    fn run(&mut self) {
        while let Some(Reverse(event)) = self.events.pop() {
            self.pass_to(event.time_s.min(self.end_s));
            if event.time_s >= self.end_s {
                return;
            }
            match event.happening {
                Happening::Arrival => self.arrive(),
                Happening::ServiceEnd { station, operation } => self.leave(station, operation),
            }
        }
        self.pass_to(self.end_s);
    }

    /// Advances the clock, and accounts for the elapsed time inside the window.
    fn pass_to(&mut self, time_s: f64) {
        let counted_s = (time_s - self.now_s.max(self.system.warm_up_s)).max(0.0);
        for place in &mut self.places {
            place.busy_s += f64::from(place.busy) * counted_s;
            let present = f64::from(place.busy) + place.waiting.len() as f64;
            place.present_integral += present * counted_s;
            if place.busy > 0 {
                place.occupied_s += counted_s;
            }
        }
        self.in_flight_integral += self.in_flight as f64 * counted_s;
        self.now_s = time_s;
    }

    fn arrive(&mut self) {
        if let Source::Open { .. } = self.system.source {
            self.plan_arrival();
        }
        self.in_flight += 1;
        let arrival_s = self.now_s;
        self.enter(0, Operation { arrival_s });
    }

    fn enter(&mut self, station: usize, operation: Operation) {
        let place = &mut self.places[station];
        if place.busy < place.servers {
            place.busy += 1;
            self.plan_service(station, operation);
        } else {
            place.waiting.push_back(operation);
        }
    }

    fn leave(&mut self, station: usize, operation: Operation) {
        let is_counted = self.now_s >= self.system.warm_up_s;
        self.places[station].served += u64::from(is_counted);
        match self.places[station].waiting.pop_front() {
            Some(next) => self.plan_service(station, next),
            None => self.places[station].busy -= 1,
        }
        if station + 1 < self.places.len() {
            self.enter(station + 1, operation);
        } else {
            self.complete(operation);
        }
    }

    fn complete(&mut self, operation: Operation) {
        self.in_flight -= 1;
        if self.now_s >= self.system.warm_up_s {
            self.completions.push(Completion {
                end_s: self.now_s - self.system.warm_up_s,
                response_s: self.now_s - operation.arrival_s,
            });
        }
        if let Source::Closed { .. } = self.system.source {
            self.plan_arrival();
        }
    }

    fn plan_arrival(&mut self) {
        let distance = match self.system.source {
            Source::Open { rate_per_s } => Service::Exponential(1.0 / rate_per_s),
            Source::Closed { think, .. } => think,
        };
        let after_s = self.draw(distance);
        self.plan(after_s, Happening::Arrival);
    }

    fn plan_service(&mut self, station: usize, operation: Operation) {
        let after_s = self.draw(self.system.stations[station].service);
        self.plan(after_s, Happening::ServiceEnd { station, operation });
    }

    fn plan(&mut self, after_s: f64, happening: Happening) {
        self.planned += 1;
        self.events.push(Reverse(Event {
            time_s: self.now_s + after_s,
            number: self.planned,
            happening,
        }));
    }

    fn draw(&mut self, service: Service) -> f64 {
        match service {
            Service::Constant(mean_s) => mean_s,
            Service::Exponential(mean_s) => {
                let unit: f64 = Exp1.sample(&mut self.rng);
                mean_s * unit
            }
        }
    }

    fn observation(self) -> Observation {
        Observation {
            window_s: self.system.window_s,
            completions: self.completions,
            busy_s: self.places.iter().map(|place| place.busy_s).collect(),
            occupied_s: self.places.iter().map(|place| place.occupied_s).collect(),
            mean_present: self
                .places
                .iter()
                .map(|place| place.present_integral / self.system.window_s)
                .collect(),
            served: self.places.iter().map(|place| place.served).collect(),
            mean_in_flight: self.in_flight_integral / self.system.window_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Station;
    use super::*;

    fn open(rate_per_s: f64, station: Station, window_s: f64) -> System {
        System {
            source: Source::Open { rate_per_s },
            stations: vec![station],
            warm_up_s: 100.0,
            window_s,
        }
    }

    fn one_server(service: Service) -> Station {
        Station { servers: 1, service }
    }

    #[test]
    fn one_exponential_server_waits_as_the_textbook_says() {
        let system = open(0.5, one_server(Service::Exponential(1.0)), 200_000.0);
        let seen = simulate(&system, 1);
        // R = S / (1 - U), percentile p of R is R ln(1 / (1 - p)).
        let mean_s = seen.mean_response_s();
        assert!((mean_s - 2.0).abs() < 0.06, "{mean_s}");
        let median = seen.response_quantile_s(0.5);
        assert!((median - 2.0 * 2f64.ln()).abs() < 0.05, "{median}");
        assert!((seen.busy_s[0] / seen.window_s - 0.5).abs() < 0.01);
        assert!((seen.mean_in_flight - 1.0).abs() < 0.04);
    }

    #[test]
    fn a_constant_service_halves_the_waiting() {
        // Pollaczek and Khinchine: W = U S / (2 (1 - U)).
        let system = open(0.8, one_server(Service::Constant(1.0)), 200_000.0);
        let mean_s = simulate(&system, 2).mean_response_s();
        assert!((mean_s - 3.0).abs() < 0.1, "{mean_s}");
    }

    #[test]
    fn two_servers_share_one_queue() {
        let station = Station { servers: 2, service: Service::Exponential(1.0) };
        // Erlang C of 2 servers at U = 0.5 is 1/3: R = 1 + (1/3) / (2 - 1).
        let seen = simulate(&open(1.0, station, 200_000.0), 3);
        let mean_s = seen.mean_response_s();
        assert!((mean_s - 4.0 / 3.0).abs() < 0.02, "{mean_s}");
        // The system is empty for (1 - U) / (1 + U) of the time.
        let occupied_ratio = seen.occupied_s[0] / seen.window_s;
        assert!((occupied_ratio - 2.0 / 3.0).abs() < 0.01, "{occupied_ratio}");
    }

    #[test]
    fn a_constant_cycle_can_be_counted_by_hand() {
        let system = System {
            source: Source::Closed { clients: 1, think: Service::Constant(3.0) },
            stations: vec![one_server(Service::Constant(1.0)), one_server(Service::Constant(0.5))],
            warm_up_s: 0.0,
            window_s: 45.0,
        };
        let seen = simulate(&system, 4);
        // Cycles of 4.5 s end at 4.5, 9, …, 40.5; the cycle until 45 ends with the window.
        assert_eq!(seen.completions.len(), 9);
        assert!(seen.completions.iter().all(|done| done.response_s == 1.5));
        assert_eq!(seen.busy_s, [10.0, 5.0]);
        assert!((seen.mean_in_flight - 15.0 / 45.0).abs() < 1e-12);
    }

    #[test]
    fn clients_beyond_the_servers_wait_in_a_queue() {
        let system = System {
            source: Source::Closed { clients: 3, think: Service::Constant(0.0) },
            stations: vec![one_server(Service::Constant(1.0))],
            warm_up_s: 10.0,
            window_s: 100.0,
        };
        let seen = simulate(&system, 5);
        assert!((99..=101).contains(&seen.completions.len()));
        assert!((seen.mean_response_s() - 3.0).abs() < 1e-9);
        assert!((seen.busy_s[0] - 100.0).abs() < 1e-9);
        assert!((seen.mean_in_flight - 3.0).abs() < 1e-9);
        assert!((seen.mean_present[0] - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_same_seed_gives_the_same_observation() {
        let system = open(0.5, one_server(Service::Exponential(1.0)), 100.0);
        assert_eq!(simulate(&system, 6), simulate(&system, 6));
        assert_ne!(simulate(&system, 6), simulate(&system, 7));
    }
}
