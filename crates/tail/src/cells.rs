//! Cells to measure: every combination of the plan's values that the drivers support.

use crate::driver::{Driver, Found};
use dyno_engine::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::tail::{TailMode, TailPlan};
use dyno_record::tail::{
    Cell, CellStatus, InFlight, MOST_OF_EMBEDDED, Schedule, Settings, SkippedDriver,
};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

/// Largest number of points of each series in the document.
const POINTS: usize = 200;

/// The cells in order, without measurements, and the skipped drivers.
pub(crate) fn cells(
    plan: &Plan,
    tail: &TailPlan,
    found: &Found,
) -> Result<(Vec<Cell>, Vec<SkippedDriver>), Error> {
    let mut skipped = Vec::new();
    let producers = if tail.producers.is_empty() {
        skipped.extend(found.skipped.iter().cloned());
        found.drivers.values().filter(|driver| has(&driver.version.roles, "produce")).collect()
    } else {
        wanted(&tail.producers, "produce", found, &mut skipped)?
    };
    let consumers = wanted(&tail.consumers, "consume", found, &mut skipped)?;
    let mode = tail.mode;
    let mut cells = Vec::new();
    for producer in &producers {
        for consumer in &consumers {
            if !has(&consumer.version.modes, mode.as_str()) {
                let reason = format!("it does not support mode {}", mode.as_str());
                skip(&mut skipped, &consumer.name, reason);
                continue;
            }
            for in_flight in &tail.in_flight {
                let in_flight = match TailPlan::bound(in_flight) {
                    Ok(Some(bound)) => InFlight::Bounded(bound),
                    Ok(None) => InFlight::Unbounded,
                    Err(reason) => return Err(Error::new(Kind::BadInput, reason)),
                };
                let kind = match in_flight {
                    InFlight::Bounded(1) => "one",
                    InFlight::Bounded(_) => "bounded",
                    InFlight::Unbounded => "unbounded",
                };
                if !has(&producer.version.in_flight, kind) {
                    let reason = format!("it does not support {kind} inserts in flight");
                    skip(&mut skipped, &producer.name, reason);
                    continue;
                }
                for pool in &tail.pool {
                    let settings =
                        settings(plan, tail, (producer, consumer), (in_flight, *pool), mode);
                    cells.push(Cell {
                        name: String::new(),
                        repetition: None,
                        status: CellStatus::Failed,
                        reason: None,
                        settings,
                        measured: None,
                    });
                }
            }
        }
    }
    let seed = plan.client.seed;
    Ok((in_order(cells, tail.repeat, seed), skipped))
}

/// Names the cells and orders them for measuring. Repetitions are rounds, each with all cells in random order, so that a drift of
/// the machine affects all cells alike.
fn in_order(cells: Vec<Cell>, repeat: u32, seed: u64) -> Vec<Cell> {
    let mut ordered = Vec::new();
    if repeat < 2 {
        ordered = cells;
    } else {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for repetition in 1..=repeat {
            let mut round = cells.clone();
            round.shuffle(&mut random);
            ordered.extend(
                round.into_iter().map(|cell| Cell { repetition: Some(repetition), ..cell }),
            );
        }
    }
    let digits = ordered.len().to_string().len().max(2);
    for (place, cell) in ordered.iter_mut().enumerate() {
        cell.name = format!("{:0digits$}-{}", place + 1, name(&cell.settings));
        if let Some(repetition) = cell.repetition {
            cell.name.push_str(&format!("-repetition-{repetition}"));
        }
    }
    ordered
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|known| known == wanted)
}

fn skip(skipped: &mut Vec<SkippedDriver>, name: &str, reason: String) {
    let skip = SkippedDriver { name: name.to_owned(), reason };
    if !skipped.contains(&skip) {
        skipped.push(skip);
    }
}

/// Drivers by name. A missing toolchain skips the driver; an unknown driver or a missing role is an error.
fn wanted<'a>(
    names: &[String],
    role: &str,
    found: &'a Found,
    skipped: &mut Vec<SkippedDriver>,
) -> Result<Vec<&'a Driver>, Error> {
    let mut drivers = Vec::new();
    for name in names {
        // A request for a version must not be skipped.
        let may_miss = !name.contains('@');
        let missing = found.skipped.iter().find(|driver| driver.name == *name);
        match missing.filter(|_| may_miss) {
            Some(missing) => skip(skipped, name, missing.reason.clone()),
            None => drivers.push(found.named(name, role)?),
        }
    }
    Ok(drivers)
}

fn settings(
    plan: &Plan,
    tail: &TailPlan,
    (producer, consumer): (&Driver, &Driver),
    (in_flight, pool): (InFlight, u32),
    mode: TailMode,
) -> Settings {
    let several = |driver: &Driver, count: u32| vec![driver.name.clone(); count as usize];
    Settings {
        database: plan.data.database.clone(),
        collection: plan.data.collection.clone(),
        producers: several(producer, tail.producers_at_once),
        consumers: several(consumer, tail.consumers_at_once),
        messages: tail.messages,
        in_flight,
        pool: u64::from(pool),
        size_bytes: tail.size.0,
        capped_bytes: capped_bytes(plan, tail),
        write_concern: tail.write_concern.clone(),
        journal: plan.server.waits_for_journal(),
        mode,
        schedule: tail.rate_per_s.map(|rate_per_s| Schedule {
            rate_per_s,
            arrive: tail.arrivals,
            seed: plan.client.seed,
        }),
        idle_s: tail.idle.0.as_secs(),
        delay_us: u64::try_from(tail.work.0.as_micros()).unwrap_or(u64::MAX),
        limit_s: tail.limit.0.as_secs(),
        points: POINTS,
        producer_host: tail.producer_host.clone(),
        consumer_host: tail.consumer_host.clone(),
    }
}

/// Size of the collection. The embedded server scans a capped collection at each insert, so it gets a small one unless the plan
/// sets a size or a slow consumer.
fn capped_bytes(plan: &Plan, tail: &TailPlan) -> u64 {
    let all = tail.capped_bytes();
    let is_embedded = plan.server.kind == ServerKind::Embedded;
    if is_embedded && tail.capped_size.is_none() && tail.work.0.is_zero() {
        all.min(MOST_OF_EMBEDDED)
    } else {
        all
    }
}

/// Folder name of a cell. It begins with the cell's number, so that a listing has the order of measurement.
fn name(settings: &Settings) -> String {
    let first = |names: &[String]| names.first().cloned().unwrap_or_default();
    let bound = match settings.in_flight {
        InFlight::Bounded(bound) => format!("in-flight-{bound}"),
        InFlight::Unbounded => "unbounded".to_owned(),
    };
    format!(
        "{}-to-{}-{bound}-pool-{}",
        first(&settings.producers),
        first(&settings.consumers),
        settings.pool
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tail::DriverVersion;
    use std::path::PathBuf;

    fn driver(name: &str, in_flight: &[&str]) -> Driver {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Driver {
            name: name.to_owned(),
            run: PathBuf::from("run"),
            is_built_in: false,
            version: DriverVersion {
                contract: 1,
                language: "sh".into(),
                driver: "none".into(),
                driver_version: "1".into(),
                runtime: "sh".into(),
                runtime_version: "1".into(),
                roles: texts(&["produce", "consume"]),
                in_flight: texts(in_flight),
                unbounded: None,
                modes: texts(&["tailable"]),
                pool: true,
                monitors: true,
                build: None,
            },
        }
    }

    fn found() -> Found {
        let drivers = [driver("a", &["one", "unbounded"]), driver("b", &["one"])];
        Found {
            drivers: drivers.map(|driver| (driver.name.clone(), driver)).into(),
            skipped: ["c", "c@1"]
                .map(|name| SkippedDriver {
                    name: name.into(),
                    reason: format!("{name} is not installed"),
                })
                .into(),
            others: Vec::new(),
        }
    }

    fn of(change: impl FnOnce(&mut TailPlan)) -> Result<(Vec<String>, Vec<String>), Error> {
        let mut tail = TailPlan { consumers: vec!["a".into()], ..TailPlan::default() };
        change(&mut tail);
        let plan = dyno_plan::file::default_plan();
        let (cells, skipped) = cells(&plan, &tail, &found())?;
        let names = cells.into_iter().map(|cell| cell.name).collect();
        let reasons = skipped.into_iter().map(|one| format!("{}: {}", one.name, one.reason));
        Ok((names, reasons.collect()))
    }

    #[test]
    fn every_supported_combination_is_measured() {
        let (names, skipped) = of(|tail| {
            tail.in_flight = vec!["1".into(), "unbounded".into()];
            tail.pool = vec![5, 100];
        })
        .unwrap();
        let expected = [
            "01-a-to-a-in-flight-1-pool-5",
            "02-a-to-a-in-flight-1-pool-100",
            "03-a-to-a-unbounded-pool-5",
            "04-a-to-a-unbounded-pool-100",
            "05-b-to-a-in-flight-1-pool-5",
            "06-b-to-a-in-flight-1-pool-100",
        ];
        assert_eq!(names, expected);
        let missing = ["c", "c@1"].map(|name| format!("{name}: {name} is not installed"));
        assert_eq!(skipped[..2], missing);
        assert!(skipped[2].starts_with("b: ") && skipped[2].contains("unbounded"));
        assert_eq!(skipped.len(), 3, "{skipped:?}");
    }

    #[test]
    fn rounds_contain_all_cells_in_seeded_order() {
        let rounds = |seed: u64| {
            let mut plan = dyno_plan::file::default_plan();
            plan.client.seed = seed;
            let tail = TailPlan {
                consumers: vec!["a".into()],
                pool: (1..=8).collect(),
                repeat: 3,
                ..TailPlan::default()
            };
            cells(&plan, &tail, &found()).unwrap().0
        };
        let first = rounds(42);
        assert_eq!(first.len(), 3 * 16);
        assert_eq!(first, rounds(42));
        let order = |cells: &[Cell]| -> Vec<(String, u64)> {
            let each = cells.iter().map(|cell| &cell.settings);
            each.map(|it| (it.producers[0].clone(), it.pool)).collect()
        };
        let listed: Vec<Vec<_>> = first.chunks(16).map(order).collect();
        assert!(listed[0] != listed[1] && listed[1] != listed[2]);
        assert_ne!(order(&rounds(43)), order(&first));
        for (round, cells) in (1..).zip(first.chunks(16)) {
            assert!(cells.iter().all(|cell| cell.repetition == Some(round)));
            let mut all = order(cells);
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 16);
        }
        assert!(first[0].name.starts_with("01-") && first[0].name.ends_with("-repetition-1"));
        assert!(first[47].name.starts_with("48-"), "{}", first[47].name);
    }

    #[test]
    fn embedded_server_keeps_few_messages_unless_asked_for_more() {
        let mut plan = dyno_plan::file::default_plan();
        plan.server.kind = ServerKind::Embedded;
        let mut tail = TailPlan::default();
        assert_eq!(capped_bytes(&plan, &tail), MOST_OF_EMBEDDED);
        tail.work = dyno_plan::units::Span::from_millis(1);
        assert_eq!(capped_bytes(&plan, &tail), tail.capped_bytes());
        tail.work = TailPlan::default().work;
        tail.capped_size = Some(dyno_plan::units::Bytes(1 << 30));
        assert_eq!(capped_bytes(&plan, &tail), 1 << 30);
        tail.capped_size = None;
        plan.server.kind = ServerKind::Mongod;
        assert_eq!(capped_bytes(&plan, &tail), tail.capped_bytes());
    }

    #[test]
    fn missing_toolchain_is_skipped_and_unknown_driver_is_an_error() {
        let (names, skipped) = of(|tail| tail.producers = vec!["c".into(), "b".into()]).unwrap();
        assert_eq!((names.len(), skipped.len()), (1, 1));
        for name in ["d", "a@6.8", "c@1"] {
            let unknown = of(|tail| tail.producers = vec!["b".into(), name.into()]).unwrap_err();
            assert_eq!(unknown.kind, Kind::BadInput, "{name}");
        }
    }
}
