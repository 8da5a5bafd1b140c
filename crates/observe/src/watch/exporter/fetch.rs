//! Fetches the text of an exporter over HTTP, for a short time and up to a size.

use super::access::{AccessError, Address, trust};
use crate::health::Health;
use std::time::Duration;
use ureq::Agent;
use ureq::config::RedirectAuthHeaders;

/// Longest time for all of it: a reading must not last longer than a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Largest text. The exporters of machines and databases send some hundred kilobytes.
const SIZE_LIMIT: u64 = 8 << 20;

/// A client that keeps its connection from one reading to the next. It takes no proxy from the environment: what is
/// measured is in reach, and a detour would be part of the measurement. Credentials stay with the host that they are
/// for: they are not brought to another one that it names.
///
/// # Errors
/// As for [`trust`].
pub(super) fn client(address: &Address) -> Result<Agent, AccessError> {
    let config = Agent::config_builder()
        .timeout_global(Some(TIME_LIMIT))
        .http_status_as_error(false)
        .max_redirects(3)
        .proxy(None)
        .redirect_auth_headers(RedirectAuthHeaders::SameHost)
        .user_agent("dyno")
        .tls_config(trust(address)?)
        .build();
    Ok(config.into())
}

/// The text at an address.
///
/// # Errors
/// Credentials that cannot be read, no connection, no answer in time, an answer that is too long, that is not text, or
/// whose status is not 200.
pub(super) fn text(client: &Agent, address: &Address) -> Result<String, Health> {
    let url = &address.url;
    let failed = |what: String| Health::Failed {
        reason: format!("`{}`: {what}", address.shown()),
    };
    let mut request = client.get(url).header("Accept", "text/plain;version=0.0.4");
    if let Some(credentials) = &address.credentials {
        let header = credentials
            .header()
            .map_err(|error| failed(error.to_string()))?;
        request = request.header("Authorization", header);
    }
    let mut response = request.call().map_err(|error| failed(in_words(&error)))?;
    let status = response.status();
    if status.as_u16() != 200 {
        let mut what = format!("it answered with status {status}");
        if matches!(status.as_u16(), 401 | 403) {
            what.push_str(match address.credentials {
                Some(_) => ": it does not accept these credentials",
                None => ": it requires credentials (`token_file`, or `user` and `password_file`, in the plan)",
            });
        }
        return Err(failed(what));
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
        let what = "it answered with a page instead of metrics; is `/metrics` missing at the end of the URL?";
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
        ureq::Error::Io(error) if is_about_certificate(error) => {
            let hint = if error.to_string().contains("CaUsedAsEndEntity") {
                "it is the certificate of an authority; the exporter needs its own, signed by it or created with `basicConstraints=CA:FALSE`"
            } else {
                "set `ca_file` of the exporter in the plan to the authority to trust"
            };
            format!("{error} ({hint})")
        }
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

fn is_about_certificate(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}
