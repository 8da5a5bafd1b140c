//! AWS keys and tokens of OIDC, with scripted servers: neither the embedded server nor MongoDB's community edition has these
//! mechanisms.

use super::{connector, failure, hello, parse};
use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use dyno_load::backend::driver::DriverTarget;
use dyno_load::connect::ConnectError;
use dyno_load::error::LoadError;
use dyno_testkit::scripted;

fn payload_of(command: &Document) -> Document {
    Document::from_reader(command.get_binary_generic("payload").unwrap().as_slice()).unwrap()
}

fn binary(bytes: Vec<u8>) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes }
}

fn reply(done: bool, payload: Vec<u8>) -> Document {
    doc! { "conversationId": 7, "done": done, "payload": binary(payload), "ok": 1 }
}

fn refused() -> Document {
    doc! { "ok": 0, "code": 18, "errmsg": "Authentication failed." }
}

#[test]
fn aws_key_signs_the_server_s_challenge() {
    let port = scripted::serve(|command: &Document| {
        match command.keys().next().map_or("", String::as_str) {
            "hello" => hello(),
            "saslStart" => {
                assert_eq!(command.get_str("mechanism").unwrap(), "MONGODB-AWS");
                assert_eq!(command.get_str("$db").unwrap(), "$external");
                let mut nonce = payload_of(command).get_binary_generic("r").unwrap().clone();
                nonce.extend([9; 32]);
                let first = doc! { "s": binary(nonce), "h": "sts.eu-west-1.amazonaws.com" };
                reply(false, first.to_vec().unwrap())
            }
            "saslContinue" => {
                let payload = payload_of(command);
                let signed = payload.get_str("a").unwrap();
                let day = payload.get_str("d").unwrap().split_once('T').unwrap().0.to_owned();
                let scope = format!("Credential=AKID/{day}/eu-west-1/sts/aws4_request,");
                match signed.contains(&scope) && payload.get_str("t").ok() == Some("to+ken") {
                    true => reply(true, Vec::new()),
                    false => refused(),
                }
            }
            _ => doc! { "ok": 1 },
        }
    });
    let uri = |user: &str| {
        format!(
            "mongodb://{user}:secret@127.0.0.1:{port}/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:to%2Bken"
        )
    };
    connector(&uri("AKID")).control().unwrap();
    let error = failure(&uri("OTHER"));
    assert!(matches!(error, ConnectError::Outside { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("$external"));
    let (target, credentials) = parse(&uri("AKID"));
    let error = DriverTarget::new(&target, credentials.as_ref()).map(drop).unwrap_err();
    assert!(matches!(error, LoadError::DriverLimit { .. }), "{error:?}");
}

#[test]
fn oidc_sends_the_token_of_a_file_with_both_backends() {
    let port = scripted::serve(|command: &Document| {
        match command.keys().next().map_or("", String::as_str) {
            "hello" | "isMaster" | "ismaster" => {
                let mut hello = hello();
                hello.extend(doc! {
                    "helloOk": true, "minWireVersion": 0, "maxBsonObjectSize": 16 << 20,
                    "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000,
                });
                hello
            }
            "saslStart" if command.get_str("mechanism").unwrap() == "MONGODB-OIDC" => {
                match payload_of(command).get_str("jwt").unwrap() {
                    "a.to.ken" => reply(true, Vec::new()),
                    _ => refused(),
                }
            }
            _ => doc! { "ok": 1 },
        }
    });
    let uri = format!(
        "mongodb://127.0.0.1:{port}/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s&serverSelectionTimeoutMS=3000"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    // SAFETY: no other thread of this test's process uses the environment now, and no other test uses this variable.
    unsafe { std::env::set_var("AZURE_FEDERATED_TOKEN_FILE", &file) };
    let (target, credentials) = parse(&uri);
    let missing = dyno_load::connect::Connector::new(&target, credentials.clone()).unwrap_err();
    assert!(
        matches!(&missing, ConnectError::TokenFile { path, .. } if *path == file),
        "{missing:?}"
    );

    std::fs::write(&file, "a.to.ken").unwrap();
    let connector = connector(&uri);
    connector.connect().unwrap();
    DriverTarget::new(&target, credentials.as_ref()).unwrap();
    // The file is read again for each connection.
    std::fs::write(&file, "expired").unwrap();
    let error = connector.connect().unwrap_err();
    assert!(matches!(error, ConnectError::Outside { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("oidcIdentityProviders"));
}
