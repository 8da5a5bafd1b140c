//! The checked address of the metrics, and their server.

use crate::args::standing::MetricsArguments;
use crate::messages::Messages;
use crate::metrics::feed::Feed;
use crate::metrics::http::{self, Service};
use crate::surroundings::Surroundings;
use dyno_engine::{Error, Kind, OrFault};
use dyno_fleet::options::Hidden;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Address to serve metrics at, and the required token.
#[derive(Debug)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    token: Option<Hidden>,
}

impl Endpoint {
    /// Checks the options; `None` without `--metrics`.
    pub(crate) fn resolve(
        arguments: &MetricsArguments,
        surroundings: &Surroundings,
    ) -> Result<Option<Endpoint>, Error> {
        let Some(address) = arguments.metrics else {
            return Ok(None);
        };
        let (token, name) = match &arguments.metrics_token {
            Some(token) => (Some(token), "--metrics-token"),
            None => (surroundings.metrics_token.as_ref(), "DYNO_METRICS_TOKEN"),
        };
        if let Some(problem) = token.and_then(problem) {
            let text = format!("the token in `{name}` {problem}");
            let hint = "create a token, for example with `openssl rand -hex 16`";
            return Err(Error::new(Kind::BadInput, text).with_hint(hint));
        }
        if token.is_none() && !address.ip().is_loopback() {
            let text = format!(
                "`--metrics {address}` would serve metrics to other machines without a token"
            );
            let hint = "pass `--metrics-token` or set `DYNO_METRICS_TOKEN`, or use an address that only this machine can reach, such as `127.0.0.1:9464`";
            return Err(Error::new(Kind::BadInput, text).with_hint(hint));
        }
        Ok(Some(Endpoint { address, token: token.cloned() }))
    }

    fn start(self, messages: Messages) -> Result<Metrics, Error> {
        let (listener, address) = TcpListener::bind(self.address)
            .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
            .or_fault(Kind::Environment, || format!("cannot serve metrics at `{}`", self.address))
            .with_hint("choose another address with `--metrics`; port 0 picks a free port")?;
        let feed = Feed::default();
        let service = Service { feed: feed.clone(), token: self.token };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || {
            if let Err(error) = http::serve(listener, service, stopped) {
                tracing::warn!("metrics are not served: {error}");
            }
        });
        let thread =
            thread.or_fault(Kind::Environment, || "cannot start a thread for the metrics")?;
        messages.note(&format!("metrics: http://{address}/metrics"));
        Ok(Metrics { feed, server: Some((stop, thread)) })
    }
}

/// Serves metrics until it is dropped.
pub(crate) struct Metrics {
    feed: Feed,
    server: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Metrics {
    /// Starts to serve at the endpoint, if any, and prints the address.
    pub(crate) fn serve(
        endpoint: Option<Endpoint>,
        messages: Messages,
    ) -> Result<Option<Metrics>, Error> {
        endpoint.map(|endpoint| endpoint.start(messages)).transpose()
    }

    /// The state behind the metrics.
    pub(crate) fn feed(&self) -> Feed {
        self.feed.clone()
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.server.take() {
            // The server may have ended already.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

/// Minimum length of a token: 16 characters cannot be guessed over a network.
const LEAST_CHARACTERS: usize = 16;

/// Reason to refuse a token, without showing it.
fn problem(token: &Hidden) -> Option<String> {
    let token = token.reveal();
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("must consist of visible ASCII characters".into());
    }
    let is_short = token.len() < LEAST_CHARACTERS;
    is_short.then(|| format!("must have at least {LEAST_CHARACTERS} characters"))
}

/// Parses `ADDRESS:PORT` or `localhost:PORT`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let numbers = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numbers
        .parse()
        .map_err(|_| "it must be `ADDRESS:PORT`, such as `127.0.0.1:9464` or `[::1]:0`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn resolve(
        metrics: &str,
        option: Option<&str>,
        variable: Option<&str>,
    ) -> Result<Option<Endpoint>, Error> {
        let arguments = MetricsArguments {
            metrics: Some(address(metrics).expect("the address is valid")),
            metrics_token: option.map(Hidden::new),
        };
        let surroundings =
            Surroundings { metrics_token: variable.map(Hidden::new), ..Surroundings::default() };
        Endpoint::resolve(&arguments, &surroundings)
    }

    #[test]
    fn address_is_an_ip_or_localhost_with_a_port() {
        assert_eq!(address("localhost:1").expect("valid").to_string(), "127.0.0.1:1");
        assert_eq!(address("[::1]:0").expect("valid").to_string(), "[::1]:0");
        for wrong in ["9464", "127.0.0.1", "db.example:1", ":1", "localhost:x"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn remote_addresses_need_a_token() {
        for here in ["127.0.0.1:0", "127.8.0.1:0", "[::1]:0"] {
            assert!(resolve(here, None, None).is_ok(), "{here}");
        }
        for everywhere in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let failure = resolve(everywhere, None, None).expect_err("others can reach it");
            assert_eq!(failure.kind, Kind::BadInput);
            assert!(failure.hint.is_some());
            assert!(resolve(everywhere, Some(TOKEN), None).is_ok());
            assert!(resolve(everywhere, None, Some(TOKEN)).is_ok());
        }
    }

    #[test]
    fn token_is_long_enough_and_fits_into_a_header() {
        assert_eq!(problem(&Hidden::new(TOKEN)), None);
        for text in ["0123456789abcde", "0123456789 abcdef", "0123456789abcdef\n"] {
            assert!(problem(&Hidden::new(text)).is_some(), "{text}");
        }
    }

    #[test]
    fn bad_token_is_refused_without_being_shown() {
        for (option, variable, name) in [
            (Some("short"), Some(TOKEN), "--metrics-token"),
            (None, Some("short"), "DYNO_METRICS_TOKEN"),
        ] {
            let failure = resolve("127.0.0.1:0", option, variable).expect_err("token too short");
            let text = format!("{:#} {:?}", failure.cause, failure.hint);
            assert!(text.contains(name) && !text.contains("short"), "{text}");
        }
    }
}
