//! Short HTTP requests to other programs: exporters for their metrics, Grafana for annotations.

mod access;

pub use access::{AccessError, Address, Credentials};

use access::trust;
use std::time::Duration;
use ureq::Agent;
use ureq::config::RedirectAuthHeaders;

/// Longest time for a whole request: a reading must not take longer than a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Longest answer. Exporters of machines and databases send some hundred kilobytes.
pub(crate) const SIZE_LIMIT: u64 = 8 << 20;

/// A client that keeps its connection between requests. It ignores proxies in the environment: the
/// target is in reach, and a detour would be part of the measurement. Credentials are for the
/// address in the plan and do not follow redirections.
///
/// # Errors
/// The errors of [`trust`].
pub(crate) fn client(address: &Address) -> Result<Agent, AccessError> {
    let config = Agent::config_builder()
        .timeout_global(Some(TIME_LIMIT))
        .http_status_as_error(false)
        .max_redirects(3)
        .proxy(None)
        .redirect_auth_headers(RedirectAuthHeaders::Never)
        .user_agent("dyno")
        .tls_config(trust(address)?)
        .build();
    Ok(config.into())
}

/// An error in the words of the report.
pub(crate) fn in_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", TIME_LIMIT.as_secs()),
        ureq::Error::BodyExceedsLimit(_) => {
            format!("its answer is longer than {} MiB", SIZE_LIMIT >> 20)
        }
        ureq::Error::Io(error) if is_about_certificate(error) => {
            let hint = if error.to_string().contains("CaUsedAsEndEntity") {
                "it uses the certificate of an authority; give it its own certificate, signed by \
                    the authority or created with `basicConstraints=CA:FALSE`"
            } else {
                "set its `ca_file` in the plan to the authority to trust"
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    /// Answers one request and returns the request's lines.
    fn answer(listener: &TcpListener, text: &str) -> Vec<String> {
        let (mut stream, _) = listener.accept().unwrap();
        let request = BufReader::new(stream.try_clone().unwrap())
            .lines()
            .map(Result::unwrap)
            .take_while(|line| !line.is_empty());
        let request: Vec<String> = request.collect();
        stream.write_all(text.as_bytes()).unwrap();
        request
    }

    #[test]
    fn credentials_do_not_follow_a_redirection_to_another_port() {
        let [first, second] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [from, to] =
            [&first, &second].map(|one| format!("http://{}/", one.local_addr().unwrap()));
        let redirection = format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let servers = thread::spawn(move || {
            let end = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
            [answer(&first, &redirection), answer(&second, end)]
        });
        let client = client(&Address::open(from.clone())).unwrap();
        let request = client.get(&from).header("Authorization", "Bearer secret");
        assert_eq!(request.call().unwrap().status(), 200);
        let has_credentials = servers.join().unwrap().map(|request| {
            let mut lines = request.iter().map(|line| line.to_lowercase());
            lines.any(|line| line.starts_with("authorization:"))
        });
        assert_eq!(has_credentials, [true, false]);
    }
}
