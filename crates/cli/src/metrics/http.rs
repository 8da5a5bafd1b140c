//! The HTTP server of the metrics: one thread, and short connections.

use crate::metrics::feed::Feed;
use crate::metrics::text::{OPEN_METRICS, PLAIN, open_metrics, plain};
use dyno_fleet::options::Hidden;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Maximum number of concurrent connections.
const MOST_CONNECTIONS: usize = 256;

/// Time limit for a request and its answer. Slower readers are disconnected.
const CONNECTION_LIMIT: Duration = Duration::from_secs(10);

/// Time limit for the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(2);
/// Maximum size of the head of a request.
const MOST_HEAD_BYTES: usize = 16 << 10;

/// Pause after an accept failed, for example because file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The served metrics and the required token.
pub(crate) struct Service {
    pub(crate) feed: Feed,
    pub(crate) token: Option<Hidden>,
}

/// Serves until `stop` receives a message.
pub(crate) fn serve(
    listener: std::net::TcpListener,
    service: Service,
    stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        tokio::select! {
            _ = stop => {}
            () = accept(listener, Arc::new(service)) => {}
        }
        Ok(())
    })
}

async fn accept(listener: TcpListener, service: Arc<Service>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        // Closes the others, so that file descriptors are left for the run.
        if connections.len() < MOST_CONNECTIONS {
            connections.spawn(converse(stream, Arc::clone(&service)));
        }
    }
}

/// Reads one request and answers it.
async fn converse(stream: TcpStream, service: Arc<Service>) {
    let answer = service_fn(|request: Request<Incoming>| {
        let response = service.answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(MOST_HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    // Failures of a client do not concern the run.
    let _ = tokio::time::timeout(CONNECTION_LIMIT, connection).await;
}

impl Service {
    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !self.admits(request.headers()) {
            let mut response = text(StatusCode::UNAUTHORIZED, "token required\n");
            let challenge = hyper::header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            return response;
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            let allowed = hyper::header::HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allowed);
            return response;
        }
        match request.uri().path() {
            "/metrics" if accepts_open_metrics(request.headers()) => {
                with_type(OPEN_METRICS, open_metrics(&self.feed.families()))
            }
            "/metrics" => with_type(PLAIN, plain(&self.feed.families())),
            _ => text(StatusCode::NOT_FOUND, "not found\n"),
        }
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let Some(value) = headers.get(AUTHORIZATION).map(|value| value.as_bytes()) else {
            return false;
        };
        const SCHEME: &[u8] = b"bearer ";
        match value.split_at_checked(SCHEME.len()) {
            Some((scheme, given)) if scheme.eq_ignore_ascii_case(SCHEME) => {
                // In constant time, so that the duration does not reveal the position of a difference.
                token.reveal().as_bytes().ct_eq(given).into()
            }
            _ => false,
        }
    }
}

/// Whether the client asks for OpenMetrics by name. `*/*` gets the older text format, which all clients can read.
fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let mut texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    texts.any(|text| text.to_ascii_lowercase().contains("application/openmetrics-text"))
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = with_type("text/plain; charset=utf-8", body.to_owned());
    *response.status_mut() = status;
    response
}

fn with_type(kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("the request is valid")
    }

    fn service(token: Option<&str>) -> Service {
        Service { feed: Feed::default(), token: token.map(Hidden::new) }
    }

    fn status(service: &Service, request: &Request<()>) -> u16 {
        service.answer(request).status().as_u16()
    }

    #[test]
    fn http_serves_only_get_and_known_paths() {
        let service = service(None);
        for (method, path, expected) in [
            (Method::GET, "/metrics", 200),
            (Method::HEAD, "/metrics?x=1", 200),
            (Method::GET, "/metrics/", 404),
            (Method::POST, "/metrics", 405),
        ] {
            let request = request(method, path, &[]);
            assert_eq!(status(&service, &request), expected, "{path}");
        }
    }

    #[test]
    fn http_refuses_requests_without_the_token() {
        let service = service(Some("0123456789abcdef"));
        for (value, expected) in [
            (None, 401),
            (Some("Bearer 0123456789abcdef"), 200),
            (Some("bearer 0123456789abcdef"), 200),
            (Some("Bearer 0123456789abcdeX"), 401),
            (Some("Bearer 0123456789abcde"), 401),
            (Some("Basic 0123456789abcdef"), 401),
            (Some("Bearer"), 401),
        ] {
            let headers: Vec<_> = value.map(|value| ("authorization", value)).into_iter().collect();
            for path in ["/metrics", "/other"] {
                let found = status(&service, &request(Method::GET, path, &headers));
                let expected = if path == "/other" && expected == 200 { 404 } else { expected };
                assert_eq!(found, expected, "{path} {value:?}");
            }
        }
    }

    #[test]
    fn http_sends_the_accepted_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, expected) in
            [(prometheus, OPEN_METRICS), ("text/plain", PLAIN), ("*/*", PLAIN)]
        {
            let response =
                service(None).answer(&request(Method::GET, "/metrics", &[("accept", accept)]));
            assert_eq!(response.headers()[CONTENT_TYPE], expected, "{accept}");
        }
        let response = service(None).answer(&request(Method::GET, "/metrics", &[]));
        assert_eq!(response.headers()[CONTENT_TYPE], PLAIN);
    }
}
