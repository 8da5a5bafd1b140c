//! Fetches the text of an exporter over HTTP, for a short time and up to a size.

use crate::health::Health;
use std::time::Duration;
use ureq::Agent;

/// Longest time for all of it: a reading must not last longer than a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Largest text. The exporters of machines and databases tell some hundred kilobytes.
const SIZE_LIMIT: u64 = 8 << 20;

/// A client that keeps its connection from one reading to the next. It takes no proxy from the environment: what is
/// measured is in reach, and a detour would be part of the measurement.
pub(super) fn client() -> Agent {
    Agent::config_builder()
        .timeout_global(Some(TIME_LIMIT))
        .http_status_as_error(false)
        .max_redirects(3)
        .proxy(None)
        .user_agent("dyno")
        .build()
        .into()
}

/// The text at an address.
///
/// # Errors
/// No connection, no answer in time, an answer that is too long, that is not text, or whose status is not 200.
pub(super) fn text(client: &Agent, url: &str) -> Result<String, Health> {
    let failed = |what: String| Health::Failed {
        reason: format!("`{url}`: {what}"),
    };
    let request = client.get(url).header("Accept", "text/plain;version=0.0.4");
    let mut response = request.call().map_err(|error| failed(in_words(&error)))?;
    let status = response.status();
    if status.as_u16() != 200 {
        return Err(failed(format!("it answered with status {status}")));
    }
    let is_html = response
        .body()
        .mime_type()
        .is_some_and(|kind| kind == "text/html");
    let body = response.body_mut().with_config().limit(SIZE_LIMIT);
    let text = body
        .read_to_string()
        .map_err(|error| failed(in_words(&error)))?;
    if is_html || text.trim_start().starts_with('<') {
        let what = "it answered with a page, not with metrics: is `/metrics` missing at its end?";
        return Err(failed(what.to_owned()));
    }
    Ok(text)
}

fn in_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", TIME_LIMIT.as_secs()),
        ureq::Error::BodyExceedsLimit(_) => {
            format!("its answer is longer than {} MiB", SIZE_LIMIT >> 20)
        }
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}
