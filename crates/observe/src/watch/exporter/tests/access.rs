//! Exporters that require credentials or prove their identity.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::path::PathBuf;
use std::sync::Arc;

/// A folder with a file of this content.
fn file(content: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder can be created");
    let path = folder.path().join("file");
    std::fs::write(&path, content).expect("it can be written");
    (folder, path)
}

fn with(url: &str, credentials: Option<Credentials>, ca_file: Option<PathBuf>) -> Address {
    Address { url: url.to_owned(), credentials, ca_file }
}

/// The `Authorization` lines of a request.
fn authorization(request: &str) -> Vec<&str> {
    let is_it = |line: &&str| line.to_ascii_lowercase().starts_with("authorization:");
    request.lines().filter(is_it).collect()
}

/// The `Authorization` lines of two requests with these credentials; between them the secret
/// becomes `other`.
fn asked(content: &str, other: &str, credentials: fn(PathBuf) -> Credentials) -> Vec<String> {
    let (_folder, path) = file(content);
    let server = Server::start(vec![metrics("a 1\n"), metrics("a 1\n")]);
    let address = with(&server.url, Some(credentials(path.clone())), None);
    let mut source =
        exporter("x".to_owned(), address, true, DataPlace::default()).expect("the file is there");
    source.read(1.0).expect("it answers");
    std::fs::write(path, other).expect("it can be written");
    source.read(2.0).expect("it answers");
    let requests = server.requests();
    let lines = |request: &String| authorization(request).join("\n").to_ascii_lowercase();
    requests.iter().map(lines).collect()
}

#[test]
fn token_is_sent_and_renewed() {
    let expected = ["authorization: bearer abc.def", "authorization: bearer ghi"];
    assert_eq!(asked("abc.def\n", "ghi", Credentials::Token), expected);
}

#[test]
fn user_and_password_are_sent() {
    let credentials = |file| Credentials::Password { user: "scraper".to_owned(), file };
    // Base64 of `scraper:pass word` and of `scraper:` with an umlaut; compared case-insensitively.
    let expected =
        ["authorization: basic c2nyyxblcjpwyxnzihdvcmq=", "authorization: basic c2nyyxblcjrdpa=="];
    assert_eq!(asked("pass word\r\n", "\u{e4}", credentials), expected);
}

#[test]
fn refusal_names_the_required_credentials() {
    let refusal = || response("401 Unauthorized", "text/plain", "");
    let server = Server::start(vec![refusal(), refusal()]);
    let health = source(&server.url, true).read(1.0).expect_err("it refuses");
    let reason = health.reason();
    assert!(reason.contains("(`token_file`"), "{reason}");

    let (_folder, path) = file("not-this-one");
    let address = with(&server.url, Some(Credentials::Token(path)), None);
    let mut source =
        exporter("x".to_owned(), address, true, DataPlace::default()).expect("the file is there");
    let health = source.read(1.0).expect_err("it refuses");
    server.requests();
    let reason = health.reason();
    assert!(reason.contains("not accept"), "{reason}");
    assert!(!reason.contains("not-this-one"), "{reason}");
}

#[test]
fn credentials_are_not_sent_to_another_host() {
    let server = Server::start(vec![metrics("a 1\n")]);
    let elsewhere = server.url.replace("127.0.0.1", "localhost");
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n");
    let first = Server::start(vec![Answer::Bytes(head.into_bytes())]);
    let (_folder, path) = file("secret");
    let address = with(&first.url, Some(Credentials::Token(path)), None);
    let mut source =
        exporter("x".to_owned(), address, true, DataPlace::default()).expect("the file is there");
    source.read(1.0).expect("it is sent on");
    assert_eq!(authorization(&first.requests()[0]).len(), 1);
    assert_eq!(authorization(&server.requests()[0]), [""; 0]);
}

#[test]
fn unfit_files_are_named_but_their_content_is_not_shown() {
    let problem = |credentials: Option<Credentials>, ca_file: Option<PathBuf>| {
        let address = with("https://localhost/", credentials, ca_file);
        let error = exporter("x".to_owned(), address, true, DataPlace::default()).err();
        error.expect("it is refused")
    };
    for (content, expected) in [
        ("", "empty"),
        ("\n", "empty"),
        ("two words", "token"),
        ("caf\u{e9}", "token"),
        (&"x".repeat(5000), "4096 bytes"),
    ] {
        let (_folder, file_path) = file(content);
        let reported = problem(Some(Credentials::Token(file_path.clone())), None);
        let text = reported.to_string();
        let shown = file_path.display().to_string();
        assert!(text.contains(&shown) && !text.contains("two words"), "{text}");
        let AccessError::Unfit { path, problem } = reported else {
            panic!("{text}");
        };
        assert_eq!(path, file_path);
        assert!(problem.contains(expected), "{problem}");
    }
    let (folder, path) = file("no certificate");
    let reported = problem(None, Some(path));
    assert!(
        matches!(&reported, AccessError::Unfit { problem, .. } if problem.contains("certificate")),
        "{reported}"
    );
    let gone = folder.path().join("gone");
    for reported in
        [problem(None, Some(gone.clone())), problem(Some(Credentials::Token(gone.clone())), None)]
    {
        assert!(
            matches!(&reported, AccessError::Unreadable { path, .. } if *path == gone),
            "{reported}"
        );
    }
}

/// An exporter behind TLS on this machine that answers this many connections. Its certificate is
/// for `localhost`, and may be an authority's.
fn encrypted(connections: usize, is_authority: bool) -> (u16, String, JoinHandle<()>) {
    let signing_key = KeyPair::generate().expect("a key can be created");
    let names = vec!["localhost".to_owned()];
    let mut parameters = CertificateParams::new(names).expect("it is a name");
    if is_authority {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let cert = parameters.self_signed(&signing_key).expect("a certificate can be created");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("it is a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports them")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("they fit together");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let thread = std::thread::spawn(move || {
        for _ in 0..connections {
            let (stream, _) = listener.accept().expect("a client comes");
            let connection = ServerConnection::new(Arc::clone(&config)).expect("it is good");
            let mut stream = StreamOwned::new(connection, stream);
            let mut request = [0; 1024];
            // A client that does not trust this certificate disconnects.
            if stream.read(&mut request).is_ok() {
                let body =
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\na 1\n";
                drop(stream.write_all(body.as_bytes()));
                stream.conn.send_close_notify();
                drop(stream.flush());
            }
        }
    });
    (port, cert.pem(), thread)
}

#[test]
fn tls_exporter_needs_a_trusted_certificate_for_its_name() {
    let (port, certificate, thread) = encrypted(3, false);
    let (_folder, trusted) = file(&certificate);
    let read = |host: &str, ca_file: Option<PathBuf>| {
        let address = with(&format!("https://{host}:{port}/metrics"), None, ca_file);
        let mut source = exporter("x".to_owned(), address, true, DataPlace::default())
            .expect("the file is good");
        source.read(1.0)
    };
    let reported = read("localhost", Some(trusted.clone())).expect("it is trusted");
    assert_values(&reported, &[("exporter.a", 1.0)]);

    let (_folder, stranger) = file(&of_a_stranger());
    for (host, ca_file) in [("localhost", stranger), ("127.0.0.1", trusted)] {
        let health = read(host, Some(ca_file)).expect_err("it is not trusted");
        let reason = health.reason().to_owned();
        assert!(reason.contains("certificate"), "{reason}");
        assert!(reason.contains("`ca_file`"), "{reason}");
    }
    thread.join().expect("the server does not panic");
}

#[test]
fn authority_certificate_is_refused_for_an_exporter() {
    let (port, certificate, thread) = encrypted(1, true);
    let (_folder, trusted) = file(&certificate);
    let address = with(&format!("https://localhost:{port}/metrics"), None, Some(trusted));
    let mut source =
        exporter("x".to_owned(), address, true, DataPlace::default()).expect("the file is good");
    let health = source.read(1.0).expect_err("it is refused");
    thread.join().expect("the server does not panic");
    let reason = health.reason();
    assert!(reason.contains("an authority"), "{reason}");
}

/// A certificate from a different issuer.
fn of_a_stranger() -> String {
    let made = generate_simple_self_signed(["localhost".to_owned()]);
    made.expect("a certificate can be created").cert.pem()
}
