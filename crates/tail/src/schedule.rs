//! Writes the file of intended starts for a producer: the arrivals of the load engine.

use crate::error::TailError;
use dyno_load::schedule::{Arrivals, Share};
use dyno_record::tail::{Schedule, TailArrivals};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Intended starts of producer `producer` of `producers`, in nanoseconds after the start, in order. With equal distances, producers
/// take turns.
pub fn intended_ns(schedule: Schedule, producer: u64, producers: u64) -> impl Iterator<Item = u64> {
    let share = Share { worker: producer, worker_count: producers.max(1), offset_ns: 0 };
    let mut arrivals = match schedule.arrive {
        TailArrivals::Constant => Arrivals::constant(schedule.rate_per_s, 0, share),
        TailArrivals::Poisson => Arrivals::poisson(schedule.rate_per_s, 0, share, schedule.seed),
    };
    std::iter::from_fn(move || {
        let next = arrivals.next_ns();
        arrivals.advance();
        Some(next)
    })
}

/// Writes the first `messages` intended starts of a producer as little-endian u64.
///
/// # Errors
/// [`TailError::File`].
pub fn write(
    schedule: Schedule,
    path: &Path,
    producer: u64,
    producers: u64,
    messages: u64,
) -> Result<(), TailError> {
    let write = || {
        let mut file = BufWriter::new(File::create_new(path)?);
        let starts = intended_ns(schedule, producer, producers);
        for (_, start) in (0..messages).zip(starts) {
            file.write_all(&start.to_le_bytes())?;
        }
        file.flush()
    };
    write().map_err(TailError::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schedule: Schedule, producer: u64, producers: u64, messages: u64) -> Vec<u64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("schedule");
        write(schedule, &path, producer, producers, messages).unwrap();
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len() as u64, 8 * messages);
        let numbers = bytes.chunks_exact(8);
        numbers.map(|number| u64::from_le_bytes(number.try_into().unwrap())).collect()
    }

    #[test]
    fn producers_take_turns_at_equal_distances() {
        let schedule = Schedule { rate_per_s: 1000.0, arrive: TailArrivals::Constant, seed: 1 };
        assert_eq!(read(schedule, 0, 2, 3), [0, 2_000_000, 4_000_000]);
        assert_eq!(read(schedule, 1, 2, 3), [1_000_000, 3_000_000, 5_000_000]);
    }

    #[test]
    fn random_arrivals_repeat_with_their_seed_and_increase() {
        let schedule = Schedule { rate_per_s: 1000.0, arrive: TailArrivals::Poisson, seed: 5 };
        let first = read(schedule, 0, 1, 5000);
        assert_eq!(first, read(schedule, 0, 1, 5000));
        assert!(first.is_sorted());
        let mean_ns = first[4999] as f64 / 4999.0;
        assert!((mean_ns / 1e6 - 1.0).abs() < 0.1, "{mean_ns}");
        let other = Schedule { seed: 6, ..schedule };
        assert_ne!(first, read(other, 0, 1, 5000));
    }
}
