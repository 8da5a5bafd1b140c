//! Checks a server from a client's position: the time of an empty command, and access without a password.

use crate::connect::{Connector, Control, ControlError};
use bson::doc;
use dyno_plan::uri::Target;
use std::time::{Duration, Instant};

/// Server code for a command that requires a user.
const UNAUTHORIZED: i32 = 13;
/// Maximum wait for the answer to a client without a password.
const ANONYMOUS_LIMIT: Duration = Duration::from_secs(5);

/// Times of empty commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrips {
    /// Commands; at least 1.
    pub count: u64,
    /// Median.
    pub median_us: f64,
    /// 99th percentile: the smallest time that 99 % of the commands do not exceed.
    pub p99_us: f64,
}

/// Sends empty commands one after the other until `count` were answered or `limit` is over; at least one.
///
/// # Errors
/// [`ControlError`] if the connection fails or the server refuses to answer.
pub fn round_trips(
    control: &mut Control,
    count: usize,
    limit: Duration,
) -> Result<RoundTrips, ControlError> {
    let begin = Instant::now();
    let mut times_us = Vec::with_capacity(count);
    while times_us.is_empty() || (times_us.len() < count && begin.elapsed() < limit) {
        let start = Instant::now();
        control.run("admin", doc! { "ping": 1 })?;
        times_us.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times_us.sort_by(f64::total_cmp);
    Ok(summary(&times_us))
}

/// Summarizes sorted times, at least one.
fn summary(times_us: &[f64]) -> RoundTrips {
    let at = |share: f64| {
        let rank = (share * times_us.len() as f64).ceil() as usize;
        times_us[rank.clamp(1, times_us.len()) - 1]
    };
    RoundTrips { count: times_us.len() as u64, median_us: at(0.5), p99_us: at(0.99) }
}

/// Whether the server refuses to list its databases to a client without a password. `None` if undecided: the server
/// does not answer such clients, or fails for another reason.
pub fn requires_password(target: &Target) -> Option<bool> {
    let mut control = Connector::new(target, None).ok()?.control().ok()?;
    control.set_limit(Some(ANONYMOUS_LIMIT));
    match control.run("admin", doc! { "listDatabases": 1, "nameOnly": true }) {
        Ok(_) => Some(false),
        Err(error) if error.code() == Some(UNAUTHORIZED) => Some(true),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let times: Vec<f64> = (1..=200).map(f64::from).collect();
        let expected = RoundTrips { count: 200, median_us: 100.0, p99_us: 198.0 };
        assert_eq!(summary(&times), expected);
        let one = RoundTrips { count: 1, median_us: 7.0, p99_us: 7.0 };
        assert_eq!(summary(&[7.0]), one);
    }
}
