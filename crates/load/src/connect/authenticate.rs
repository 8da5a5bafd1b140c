//! Authenticates a session by the mechanism of the connection string.

use super::error::{AUTHENTICATION_FAILED, ConnectError, Source};
use super::outside;
use super::session::{Deadline, Session};
use dyno_plan::uri::{self, Credentials};
use dyno_wire::aws;
use dyno_wire::bson::{Document, write_document};
use dyno_wire::handshake::{
    Hello, SaslReply, write_authenticate, write_sasl_continue, write_sasl_start,
};
use dyno_wire::reply;
use dyno_wire::scram::{Client, Mechanism, SaltedPasswords};

const STEP: &str = "authenticating";
/// First wire version whose servers have SCRAM-SHA-256 (MongoDB 4.0).
const SHA_256_WIRE_VERSION: i32 = 7;

/// The database of the user.
pub(super) fn source(credentials: &Credentials) -> &str {
    credentials.source.as_deref().unwrap_or("admin")
}

/// Authenticates the session.
pub(super) fn authenticate(
    session: &mut Session,
    credentials: &Credentials,
    hello: &Hello,
    cache: &SaltedPasswords,
    deadline: Deadline,
) -> Result<(), ConnectError> {
    let mut exchange = Exchange { session, credentials, deadline };
    match credentials.mechanism {
        Some(uri::Mechanism::X509) => {
            let user = Some(credentials.username.as_str()).filter(|user| !user.is_empty());
            exchange.certificate(|out, id| write_authenticate(out, id, user))
        }
        Some(uri::Mechanism::Plain) => {
            let payload = format!("\0{}\0{}", credentials.username, credentials.password());
            exchange.start(uri::Mechanism::Plain.name(), payload.as_bytes())?.end(&exchange)
        }
        Some(uri::Mechanism::Oidc) => {
            let token = outside::token()?;
            let mut payload = Vec::new();
            write_document(&mut payload, |writer| {
                writer.string("jwt", &token);
            });
            exchange.start(uri::Mechanism::Oidc.name(), &payload)?.end(&exchange)
        }
        Some(uri::Mechanism::Aws) => by_aws_key(exchange),
        Some(uri::Mechanism::ScramSha1) => by_password(exchange, Mechanism::ScramSha1, cache),
        Some(uri::Mechanism::ScramSha256) => by_password(exchange, Mechanism::ScramSha256, cache),
        None => by_password(exchange, best_mechanism(hello), cache),
    }
}

fn by_aws_key(mut exchange: Exchange<'_>) -> Result<(), ConnectError> {
    let key = outside::aws_key(exchange.credentials)?;
    let nonce = super::random::bytes()?;
    let first = exchange.start(uri::Mechanism::Aws.name(), &aws::first_message(&nonce))?;
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let second = aws::second_message(&key, &nonce, &first.payload, &time)
        .map_err(|error| exchange.failed(error))?;
    exchange.proceed(first.conversation_id, &second)?.end(&exchange)
}

fn by_password(
    mut exchange: Exchange<'_>,
    mechanism: Mechanism,
    cache: &SaltedPasswords,
) -> Result<(), ConnectError> {
    let credentials = exchange.credentials;
    let nonce = super::random::nonce()?;
    let password = credentials.password();
    let mut client = Client::new(mechanism, &credentials.username, password, &nonce)
        .map_err(|error| exchange.failed(error))?;
    let first = client.first_message();
    let server_first = exchange.start(mechanism.name(), first.as_bytes())?;
    let last = client
        .server_first(&server_first.payload, cache)
        .map_err(|error| exchange.failed(error))?;
    let conversation = server_first.conversation_id;
    let server_final = exchange.proceed(conversation, last.as_bytes())?;
    client.server_final(&server_final.payload).map_err(|error| exchange.failed(error))?;
    if server_final.done {
        return Ok(());
    }
    // Servers before 4.4 end with an empty exchange.
    exchange.proceed(conversation, b"")?.end(&exchange)
}

/// The best mechanism that the server has for the user.
fn best_mechanism(hello: &Hello) -> Mechanism {
    let has_sha_256 = match &hello.mechanisms {
        Some(names) => names.iter().any(|name| name == Mechanism::ScramSha256.name()),
        // The server does not know or report the user: authentication will fail with the server's reason.
        None => hello.max_wire_version >= SHA_256_WIRE_VERSION,
    };
    if has_sha_256 { Mechanism::ScramSha256 } else { Mechanism::ScramSha1 }
}

struct Exchange<'a> {
    session: &'a mut Session,
    credentials: &'a Credentials,
    deadline: Deadline,
}

/// A step of the server, owned.
struct Step {
    conversation_id: i32,
    done: bool,
    payload: Vec<u8>,
}

impl Step {
    /// Fails unless the server has accepted the user.
    fn end(&self, exchange: &Exchange<'_>) -> Result<(), ConnectError> {
        if self.done {
            return Ok(());
        }
        Err(exchange.failed("the server did not end the exchange"))
    }
}

impl Exchange<'_> {
    fn start(&mut self, mechanism: &str, payload: &[u8]) -> Result<Step, ConnectError> {
        let database = source(self.credentials);
        self.step("saslStart", |out, id| write_sasl_start(out, id, database, mechanism, payload))
    }

    fn proceed(&mut self, conversation: i32, payload: &[u8]) -> Result<Step, ConnectError> {
        let database = source(self.credentials);
        self.step("saslContinue", |out, id| {
            write_sasl_continue(out, id, database, conversation, payload);
        })
    }

    fn step(
        &mut self,
        command: &'static str,
        write: impl FnOnce(&mut Vec<u8>, i32),
    ) -> Result<Step, ConnectError> {
        let body = self.send(write)?;
        let endpoint = self.session.endpoint.host().clone();
        let reply = reply::read(&body).map_err(|error| self.malformed(error))?;
        if !reply.ok && reply.code == AUTHENTICATION_FAILED {
            if let Some(mechanism @ (uri::Mechanism::Aws | uri::Mechanism::Oidc)) =
                self.credentials.mechanism
            {
                return Err(ConnectError::Outside {
                    endpoint,
                    mechanism,
                    message: reply.message.to_owned(),
                });
            }
            return Err(ConnectError::Credentials {
                endpoint,
                username: self.credentials.username.clone(),
                source_database: source(self.credentials).to_owned(),
            });
        }
        if !reply.ok {
            return Err(ConnectError::Command {
                endpoint,
                command,
                code: reply.code,
                message: reply.message.to_owned(),
            });
        }
        let document: Document<'_> = reply.document().map_err(|error| self.malformed(error))?;
        let sasl = SaslReply::read(document).map_err(|error| self.malformed(error))?;
        Ok(Step {
            conversation_id: sasl.conversation_id,
            done: sasl.done,
            payload: sasl.payload.to_vec(),
        })
    }

    /// The one step of an authentication by certificate.
    fn certificate(&mut self, write: impl FnOnce(&mut Vec<u8>, i32)) -> Result<(), ConnectError> {
        let body = self.send(write)?;
        let reply = reply::read(&body).map_err(|error| self.malformed(error))?;
        if reply.ok {
            return Ok(());
        }
        Err(ConnectError::CertificateUser {
            endpoint: self.session.endpoint.host().clone(),
            code: reply.code,
            message: reply.message.to_owned(),
        })
    }

    fn send(&mut self, write: impl FnOnce(&mut Vec<u8>, i32)) -> Result<Vec<u8>, ConnectError> {
        let endpoint = self.session.endpoint.host().clone();
        let (deadline, tls) = (self.deadline, self.session.is_tls());
        let sent = self.session.exchange(deadline, write);
        sent.map_err(|error| error.into_connect_error(&endpoint, STEP, deadline, tls))
    }

    fn malformed(&self, source: impl Into<Source>) -> ConnectError {
        ConnectError::Protocol {
            endpoint: self.session.endpoint.host().clone(),
            step: STEP,
            source: source.into(),
        }
    }

    fn failed(&self, source: impl Into<Source>) -> ConnectError {
        ConnectError::Authentication {
            endpoint: self.session.endpoint.host().clone(),
            username: self.credentials.username.clone(),
            source: source.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(max_wire_version: i32, mechanisms: Option<&[&str]>) -> Hello {
        Hello {
            max_wire_version,
            mechanisms: mechanisms.map(|names| names.iter().map(|&name| name.into()).collect()),
            ..Hello::default()
        }
    }

    #[test]
    fn the_best_mechanism_of_the_user_is_taken() {
        for (hello, expected) in [
            (hello(21, Some(&["SCRAM-SHA-1", "SCRAM-SHA-256"])), Mechanism::ScramSha256),
            (hello(21, Some(&["SCRAM-SHA-1"])), Mechanism::ScramSha1),
            (hello(21, None), Mechanism::ScramSha256),
            (hello(6, None), Mechanism::ScramSha1),
        ] {
            assert_eq!(best_mechanism(&hello), expected);
        }
        let credentials = Credentials::new("me".into(), "secret".into(), None);
        assert_eq!(source(&credentials), "admin");
    }
}
