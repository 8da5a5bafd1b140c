//! Certificates and users on a real `mongod`, with both backends.

use super::{Certificates, connector, failure, mongod, parse};
use bson::doc;
use dyno_load::backend::driver::DriverTarget;
use dyno_load::connect::ConnectError;
use dyno_load::error::LoadError;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};
use std::process::Command;

fn driver(uri: &str) -> Result<DriverTarget, LoadError> {
    let (target, credentials) = parse(&format!("{uri}&serverSelectionTimeoutMS=3000"));
    DriverTarget::new(&target, credentials.as_ref())
}

/// An authority, its certificates `server` and `client`, and the arguments of a server with them.
fn certificates() -> Certificates {
    let certificates = Certificates::new();
    certificates.issue("server", "localhost");
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "bench, team");
    name.push(DnType::CommonName, "client");
    params.distinguished_name = name;
    certificates.issue_of("client", params);
    certificates
}

fn start(certificates: &Certificates, more: &[&str]) -> Option<mongod::Mongod> {
    let (server, authority) = (certificates.path("server.pem"), certificates.path("ca.pem"));
    let mut arguments = vec!["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &server];
    arguments.extend(["--tlsCAFile", &authority]);
    arguments.extend(more);
    mongod::start(&arguments)
}

fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn x509_logs_in_with_both_backends() {
    let certificates = certificates();
    let Some(server) = start(&certificates, &["--auth"]) else {
        return;
    };
    let tls = format!(
        "tlsCAFile={}&tlsCertificateKeyFile={}",
        certificates.path("ca.pem"),
        certificates.path("client.pem")
    );
    let uri = |user: &str, more: &str| {
        format!("mongodb://{user}localhost:{}/db?{tls}{more}", server.port)
    };
    const X509: &str = "&authMechanism=MONGODB-X509";
    // The localhost exception allows creating the first user.
    let first = doc! { "createUser": "first", "pwd": "geheim", "roles": ["root"] };
    connector(&uri("", "")).control().unwrap().run("admin", first).unwrap();
    let error = failure(&uri("", X509));
    assert!(matches!(error, ConnectError::CertificateUser { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("$external"));

    let subject = openssl(&[
        "x509",
        "-in",
        &certificates.path("client.pem"),
        "-noout",
        "-subject",
        "-nameopt",
        "RFC2253",
    ]);
    let subject = subject.trim().strip_prefix("subject=").unwrap().trim();
    let user = doc! { "createUser": subject, "roles": [{ "role": "root", "db": "admin" }] };
    let root = connector(&uri("first:geheim@", "&authSource=admin"));
    root.control().unwrap().run("$external", user).unwrap();

    let named = format!("{}@", encoded(subject));
    for (user, more) in [
        ("", X509.to_owned()),
        ("", format!("{X509}&authSource=$external")),
        (&named, X509.to_owned()),
    ] {
        let uri = uri(user, &more);
        let mut control = connector(&uri).control().unwrap();
        let status = control.run("admin", doc! { "connectionStatus": 1 }).unwrap();
        assert!(status.to_string().contains("$external"), "{status}");
        driver(&uri).unwrap();
    }
    let without = format!("mongodb://localhost:{}/?tls=true{X509}", server.port);
    let (target, credentials) = parse(&without);
    let error = dyno_load::connect::Connector::new(&target, credentials).unwrap_err();
    assert!(matches!(error, ConnectError::NoCertificate), "{error:?}");
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn encrypted_client_keys_are_decrypted_for_both_backends() {
    let certificates = certificates();
    let Some(server) = start(&certificates, &[]) else {
        return;
    };
    let key = certificates.path("client.key");
    let read = |file: &str| std::fs::read_to_string(certificates.path(file)).unwrap();
    let write = |file: &str, text: String| {
        std::fs::write(certificates.path(file), text).unwrap();
        certificates.path(file)
    };
    let encrypted = openssl(&["pkcs8", "-topk8", "-in", &key, "-passout", "pass:a&b"]);
    let encrypted = write("enc.pem", read("client.crt") + &encrypted);
    let old = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
    let old = write("old.pem", read("client.crt") + old);
    // Stands for a certificate of version 1, which newer versions of `openssl` do not make.
    let malformed = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".to_owned();
    let malformed = write("malformed.pem", malformed + &read("client.key"));
    let uri = |file: &str, more: &str| {
        let authority = certificates.path("ca.pem");
        format!(
            "mongodb://localhost:{}/?tlsCAFile={authority}&tlsCertificateKeyFile={file}{more}",
            server.port
        )
    };
    const PASSWORD: &str = "&tlsCertificateKeyFilePassword=a%26b";
    for file in [&encrypted, &certificates.path("client.pem")] {
        let uri = uri(file, PASSWORD);
        connector(&uri).connect().unwrap();
        driver(&uri).unwrap();
    }
    for (file, more, word) in [
        (&encrypted, "", "tlsCertificateKeyFilePassword"),
        (&encrypted, "&tlsCertificateKeyFilePassword=x", "tlsCertificateKeyFilePassword"),
        (&old, PASSWORD, "openssl pkcs8"),
        (&certificates.path("client.crt"), PASSWORD, "client.key"),
        (&certificates.path("server.key"), "", "BEGIN CERTIFICATE"),
        (&malformed, "", "version 3"),
    ] {
        let (target, _) = parse(&uri(file, more));
        let error = dyno_load::connect::Connector::new(&target, None).unwrap_err();
        let ConnectError::TlsFile { option, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*option, "tlsCertificateKeyFile");
        assert!(error.hint().unwrap().contains(word), "{file}: {error:?}");
        assert!(!format!("{error:?}").contains("a&b"));
    }
}

#[test]
fn a_trusted_certificate_may_be_an_authority() {
    let certificates = certificates();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let own = params.self_signed(&key).unwrap().pem();
    let write = |file: &str, text: &str| std::fs::write(certificates.path(file), text).unwrap();
    write("own.crt", &own);
    write("own.pem", &(own.clone() + &key.serialize_pem()));
    let (pem, authority) = (certificates.path("own.pem"), certificates.path("own.crt"));
    let mut arguments = vec!["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &pem];
    arguments.extend(["--tlsCAFile", &authority, "--tlsAllowConnectionsWithoutCertificates"]);
    let Some(server) = mongod::start(&arguments) else {
        return;
    };
    let uri = |host: &str, file: &str| {
        let file = certificates.path(file);
        format!("mongodb://{host}:{}/?tlsCAFile={file}", server.port)
    };
    connector(&uri("localhost", "own.crt")).connect().unwrap();
    // The name must still match.
    let error = failure(&uri("127.0.0.1", "own.crt"));
    assert!(error.hint().unwrap().contains("tlsAllowInvalidHostnames"), "{error:?}");
    connector(&(uri("127.0.0.1", "own.crt") + "&tlsAllowInvalidHostnames=true")).connect().unwrap();
    let error = failure(&uri("localhost", "ca.pem"));
    let text = std::error::Error::source(&error).unwrap().to_string();
    assert!(text.contains("CA:TRUE"), "{text}");
    assert!(error.hint().unwrap().contains("CA:FALSE"));
    let error = driver(&uri("localhost", "own.crt")).map(drop).unwrap_err();
    let LoadError::DriverLimit { hint, .. } = &error else { panic!("{error:?}") };
    assert!(hint.contains("wire"), "{hint}");
}

#[test]
fn a_trusted_certificate_needs_no_authority() {
    let certificates = certificates();
    let Some(server) = start(&certificates, &["--tlsAllowConnectionsWithoutCertificates"]) else {
        return;
    };
    let file = certificates.path("server.crt");
    let uri = format!("mongodb://localhost:{}/?tlsCAFile={file}", server.port);
    connector(&uri).connect().unwrap();
}

#[test]
fn hints_name_a_missing_client_certificate() {
    let certificates = certificates();
    let Some(server) = start(&certificates, &[]) else {
        return;
    };
    let authority = certificates.path("ca.pem");
    let error = failure(&format!("mongodb://localhost:{}/?tlsCAFile={authority}", server.port));
    assert!(error.hint().unwrap().contains("tlsCertificateKeyFile"), "{error:?}");
}

#[test]
fn a_full_server_is_distinguished_from_one_with_tls() {
    let Some(server) = mongod::start(&["--maxConns", "5"]) else {
        return;
    };
    let connector = connector(&format!("mongodb://127.0.0.1:{}/", server.port));
    let mut open = Vec::new();
    let error = loop {
        match connector.connect() {
            Ok(connected) => open.push(connected),
            Err(error) => break error,
        }
        assert!(open.len() < 10);
    };
    let ConnectError::Closed { before, .. } = &error else { panic!("{error:?}") };
    assert!(*before > 0);
    let hint = error.hint().unwrap();
    assert!(hint.contains("maxIncomingConnections") && !hint.contains("tls=true"), "{hint}");
}

#[test]
fn both_backends_log_in_with_plain_passwords_and_through_srv() {
    let mechanisms = "authenticationMechanisms=SCRAM-SHA-1,SCRAM-SHA-256,PLAIN";
    let Some(server) = mongod::start(&["--auth", "--setParameter", mechanisms]) else {
        return;
    };
    let anonymous = connector(&format!("mongodb://127.0.0.1:{}/", server.port));
    let user = doc! { "createUser": "a,b", "pwd": "ge:heim", "roles": ["root"] };
    anonymous.control().unwrap().run("admin", user).unwrap();
    let root = format!("a%2Cb:ge%3Aheim@127.0.0.1:{}", server.port);
    let user = doc! { "createUser": "hosted", "pwd": "geheim", "roles": ["root"] };
    connector(&format!("mongodb://{root}/")).control().unwrap().run("admin", user).unwrap();

    let plain = format!("mongodb://{root}/?authMechanism=PLAIN&authSource=admin");
    connector(&plain).connect().unwrap();
    driver(&plain).unwrap();
    let error = failure(&plain.replace("ge%3Aheim", "wrong"));
    assert!(matches!(error, ConnectError::Credentials { .. }), "{error:?}");

    // The TXT record names the user's database. Without it, the server looks in `db`.
    let login = |texts| {
        let uri = "mongodb+srv://hosted:geheim@db.0.0.1/db?tls=false&retryWrites=true&w=majority&appName=Cluster0";
        let hosts = vec![("127.0.0.1", server.port)];
        let (target, credentials) = super::look_up(uri, hosts, texts).unwrap();
        let by_driver = DriverTarget::new(&target, credentials.as_ref()).map(drop);
        let connector = dyno_load::connect::Connector::new(&target, credentials).unwrap();
        (connector.connect().map(drop), by_driver)
    };
    assert!(matches!(login(vec!["authSource=admin"]), (Ok(()), Ok(()))));
    let refused = login(vec![]);
    assert!(matches!(refused, (Err(ConnectError::Credentials { .. }), Err(_))), "{refused:?}");
}

#[test]
fn names_with_commas_log_in_with_the_wire_backend_alone() {
    let Some(server) = mongod::start(&["--auth"]) else {
        return;
    };
    let anonymous = connector(&format!("mongodb://127.0.0.1:{}/", server.port));
    let user = doc! { "createUser": "a,b=c", "pwd": "geheim", "roles": ["root"] };
    anonymous.control().unwrap().run("admin", user).unwrap();
    for more in ["", "&authMechanism=SCRAM-SHA-256", "&authMechanism=SCRAM-SHA-1"] {
        let uri =
            format!("mongodb://a%2Cb%3Dc:geheim@127.0.0.1:{}/?authSource=admin{more}", server.port);
        connector(&uri).connect().unwrap();
        let error = driver(&uri).map(drop).unwrap_err();
        assert!(matches!(error, LoadError::DriverLimit { .. }), "{error:?}");
    }
}
