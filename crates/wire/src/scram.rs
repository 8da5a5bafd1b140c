//! Client side of SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677) with MongoDB's rules for passwords.
//!
//! The caller transfers the messages and supplies the nonce. Deriving the key from the password is slow on purpose;
//! [`SaltedPasswords`] caches the result, so that only the first connection is slow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Fewer iterations are refused, because they would make guessing the password cheap.
pub const MIN_ITERATIONS: u32 = 4096;
/// More iterations are refused, because they would keep the client busy for many seconds.
pub const MAX_ITERATIONS: u32 = 10_000_000;

/// Header without channel binding and authorization identity.
const GS2_HEADER: &str = "n,,";
/// `GS2_HEADER` in base64, for the last message.
const GS2_HEADER_BASE64: &str = "biws";

/// Authentication mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// SCRAM with SHA-1, for MongoDB 3.6.
    ScramSha1,
    /// SCRAM with SHA-256, since MongoDB 4.0.
    ScramSha256,
}

impl Mechanism {
    /// Name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Mechanism::ScramSha1 => hmac::<Hmac<Sha1>>(key, parts),
            Mechanism::ScramSha256 => hmac::<Hmac<Sha256>>(key, parts),
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::ScramSha1 => Sha1::digest(bytes).to_vec(),
            Mechanism::ScramSha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    fn salted_password(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Mechanism::ScramSha1 => {
                pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, iterations).to_vec()
            }
            Mechanism::ScramSha256 => {
                pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec()
            }
        }
    }

    /// Input of the key derivation for a password.
    fn prepare(self, username: &str, password: &str) -> Result<String, ScramError> {
        match self {
            Mechanism::ScramSha1 => {
                let digest = Md5::digest(format!("{username}:mongo:{password}"));
                Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
            }
            Mechanism::ScramSha256 => stringprep::saslprep(password)
                .map(std::borrow::Cow::into_owned)
                .map_err(|_| ScramError::Password),
        }
    }
}

fn hmac<M: Mac + hmac::digest::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = <M as Mac>::new_from_slice(key).expect("an HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

/// Why an authentication failed. No variant contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScramError {
    /// The password contains characters that SASLprep forbids.
    #[error("password contains characters that are not allowed")]
    Password,
    /// A message of the server violates the protocol.
    #[error("server's authentication message is malformed: {what}")]
    Malformed { what: &'static str },
    /// The server's nonce does not extend ours.
    #[error("server's nonce does not start with the client's")]
    Nonce,
    /// The number of iterations is outside the limits.
    #[error(
        "server requests {iterations} iterations; {MIN_ITERATIONS} to {MAX_ITERATIONS} are allowed"
    )]
    Iterations { iterations: u32 },
    /// The server reported a failure in its last message.
    #[error("server refuses the authentication: `{message}`")]
    Refused { message: String },
    /// The server did not prove that it knows the password.
    #[error("server did not prove that it knows the password")]
    ServerSignature,
    /// The steps were called in the wrong order.
    #[error("authentication step is out of order")]
    Order,
}

/// Cache of keys derived from one password, by mechanism, salt and iterations. All connections of one user share it.
#[derive(Default)]
pub struct SaltedPasswords {
    keys: Mutex<HashMap<Derivation, Arc<Keys>>>,
}

/// Inputs of a derivation other than the password.
#[derive(PartialEq, Eq, Hash)]
struct Derivation {
    mechanism: Mechanism,
    salt: Vec<u8>,
    iterations: u32,
}

struct Keys {
    client_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl fmt::Debug for SaltedPasswords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SaltedPasswords(…)")
    }
}

impl SaltedPasswords {
    /// An empty cache, for one user and password only.
    pub fn new() -> Self {
        SaltedPasswords::default()
    }

    /// Number of derivations so far.
    pub fn derivations(&self) -> usize {
        let keys = self.keys.lock();
        keys.unwrap_or_else(PoisonError::into_inner).len()
    }

    fn keys(&self, client: &Client, salt: Vec<u8>, iterations: u32) -> Arc<Keys> {
        let mechanism = client.mechanism;
        // The lock is held during the derivation: other connections need the same result.
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let derivation = Derivation { mechanism, salt, iterations };
        if let Some(found) = keys.get(&derivation) {
            return Arc::clone(found);
        }
        let password = client.password.as_bytes();
        let salted = mechanism.salted_password(password, &derivation.salt, iterations);
        let derived = Arc::new(Keys {
            client_key: mechanism.hmac(&salted, &[b"Client Key"]),
            server_key: mechanism.hmac(&salted, &[b"Server Key"]),
        });
        keys.insert(derivation, Arc::clone(&derived));
        derived
    }
}

/// One authentication: first message, [`server_first`](Client::server_first), [`server_final`](Client::server_final).
pub struct Client {
    mechanism: Mechanism,
    /// Output of [`Mechanism::prepare`].
    password: String,
    nonce: String,
    first_bare: String,
    server_signature: Option<Vec<u8>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Client");
        debug.field("mechanism", &self.mechanism);
        debug.finish_non_exhaustive()
    }
}

impl Client {
    /// Starts an authentication. `nonce` must be unpredictable printable ASCII without commas, and new for each one.
    pub fn new(
        mechanism: Mechanism,
        username: &str,
        password: &str,
        nonce: &str,
    ) -> Result<Self, ScramError> {
        let prepared = mechanism.prepare(username, password)?;
        Ok(Client::with_prepared(mechanism, username, prepared, nonce))
    }

    fn with_prepared(mechanism: Mechanism, username: &str, password: String, nonce: &str) -> Self {
        let username = username.replace('=', "=3D").replace(',', "=2C");
        Client {
            mechanism,
            password,
            nonce: nonce.to_owned(),
            first_bare: format!("n={username},r={nonce}"),
            server_signature: None,
        }
    }

    /// The client's first message.
    pub fn first_message(&self) -> String {
        format!("{GS2_HEADER}{}", self.first_bare)
    }

    /// Reads the server's first message and returns the client's last one.
    pub fn server_first(
        &mut self,
        payload: &[u8],
        cache: &SaltedPasswords,
    ) -> Result<String, ScramError> {
        let text = text(payload)?;
        let server = ServerFirst::parse(text)?;
        if server.nonce.len() <= self.nonce.len() || !server.nonce.starts_with(&self.nonce) {
            return Err(ScramError::Nonce);
        }
        let iterations = server.iterations;
        if !(MIN_ITERATIONS..=MAX_ITERATIONS).contains(&iterations) {
            return Err(ScramError::Iterations { iterations });
        }
        let keys = cache.keys(self, server.salt, iterations);
        let without_proof = format!("c={GS2_HEADER_BASE64},r={}", server.nonce);
        let authentication = [self.first_bare.as_str(), text, &without_proof].join(",");
        let authentication = authentication.as_bytes();
        let stored_key = self.mechanism.hash(&keys.client_key);
        let signature = self.mechanism.hmac(&stored_key, &[authentication]);
        let proof: Vec<u8> = keys
            .client_key
            .iter()
            .zip(&signature)
            .map(|(key, signature)| key ^ signature)
            .collect();
        self.server_signature = Some(self.mechanism.hmac(&keys.server_key, &[authentication]));
        Ok(format!("{without_proof},p={}", BASE64.encode(proof)))
    }

    /// Checks the server's last message: whether it accepts the client, and whether it knows the password.
    pub fn server_final(&self, payload: &[u8]) -> Result<(), ScramError> {
        let expected = self.server_signature.as_ref().ok_or(ScramError::Order)?;
        let text = text(payload)?;
        let first = text.split(',').next().unwrap_or_default();
        if let Some(message) = first.strip_prefix("e=") {
            let message = message.to_owned();
            return Err(ScramError::Refused { message });
        }
        let what = "no signature";
        let signature = first
            .strip_prefix("v=")
            .and_then(|signature| BASE64.decode(signature).ok())
            .ok_or(ScramError::Malformed { what })?;
        if signature == *expected { Ok(()) } else { Err(ScramError::ServerSignature) }
    }
}

struct ServerFirst<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> ServerFirst<'a> {
    fn parse(text: &'a str) -> Result<Self, ScramError> {
        let malformed = |what| ScramError::Malformed { what };
        let mut parts = text.split(',');
        let mut part = |prefix, what| {
            let part: Option<&'a str> = parts.next();
            part.and_then(|part| part.strip_prefix(prefix)).ok_or(malformed(what))
        };
        // A mandatory extension (`m=`) would come first, and is rejected because of this order.
        let nonce = part("r=", "no nonce")?;
        let salt = part("s=", "no salt")?;
        let iterations = part("i=", "no number of iterations")?;
        Ok(ServerFirst {
            nonce,
            salt: BASE64.decode(salt).map_err(|_| malformed("salt is not base64"))?,
            iterations: iterations.parse().map_err(|_| malformed("iterations are not a number"))?,
        })
    }
}

fn text(payload: &[u8]) -> Result<&str, ScramError> {
    std::str::from_utf8(payload).map_err(|_| ScramError::Malformed { what: "not UTF-8" })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exchange {
        mechanism: Mechanism,
        password: &'static str,
        nonce: &'static str,
        server_first: &'static str,
        client_final: &'static str,
        server_final: &'static str,
    }

    /// RFC 7677, section 3.
    const SHA_256: Exchange = Exchange {
        mechanism: Mechanism::ScramSha256,
        password: "pencil",
        nonce: "rOprNGfwEbeRWgbNEkqO",
        server_first: "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        client_final: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        server_final: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    };

    /// RFC 5802, section 5.
    const SHA_1: Exchange = Exchange {
        mechanism: Mechanism::ScramSha1,
        password: "pencil",
        nonce: "fyko+d2lbbFgONRv9qkxdawL",
        server_first: "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        client_final: "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        server_final: "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    };

    fn begin(exchange: &Exchange) -> Client {
        let Exchange { mechanism, nonce, .. } = *exchange;
        Client::with_prepared(mechanism, "user", exchange.password.into(), nonce)
    }

    #[test]
    fn the_exchanges_of_the_standards_are_reproduced() {
        for exchange in [&SHA_256, &SHA_1] {
            let mut client = begin(exchange);
            let first = format!("n,,n=user,r={}", exchange.nonce);
            assert_eq!(client.first_message(), first);
            let cache = SaltedPasswords::new();
            let last = client.server_first(exchange.server_first.as_bytes(), &cache);
            assert_eq!(last.as_deref(), Ok(exchange.client_final));
            let done = client.server_final(exchange.server_final.as_bytes());
            assert_eq!(done, Ok(()));
        }
    }

    #[test]
    fn passwords_are_prepared_as_the_server_does() {
        let digest = Mechanism::ScramSha1.prepare("user", "pencil").unwrap();
        assert_eq!(digest, "1c33006ec1ffd90f9cadcbcc0e118200");
        let prepared = Mechanism::ScramSha256.prepare("u", "I\u{ad}X\u{2168}").unwrap();
        assert_eq!(prepared, "IXIX");
        let forbidden = Client::new(Mechanism::ScramSha256, "u", "a\u{7}", "n");
        assert_eq!(forbidden.unwrap_err(), ScramError::Password);
    }

    #[test]
    fn the_key_is_derived_once_for_each_salt() {
        let cache = SaltedPasswords::new();
        for _ in 0..3 {
            let mut client = begin(&SHA_256);
            let last = client.server_first(SHA_256.server_first.as_bytes(), &cache);
            assert_eq!(last.as_deref(), Ok(SHA_256.client_final));
        }
        assert_eq!(cache.derivations(), 1);
        let other = SHA_256.server_first.replace("i=4096", "i=4097");
        begin(&SHA_256).server_first(other.as_bytes(), &cache).unwrap();
        assert_eq!(cache.derivations(), 2);
    }

    #[test]
    fn a_server_without_the_password_is_refused() {
        let mut client = begin(&SHA_256);
        assert_eq!(client.server_final(b"v=AAAA"), Err(ScramError::Order));
        let cache = SaltedPasswords::new();
        let first = SHA_256.server_first.as_bytes();
        client.server_first(first, &cache).unwrap();
        assert_eq!(client.server_final(b"v=AAAA"), Err(ScramError::ServerSignature));
        let message = "invalid-proof".into();
        let refused = Err(ScramError::Refused { message });
        assert_eq!(client.server_final(b"e=invalid-proof"), refused);
        assert!(matches!(client.server_final(b"v=*"), Err(ScramError::Malformed { .. })));
        assert!(matches!(client.server_final(b"\xff"), Err(ScramError::Malformed { .. })));
    }

    #[test]
    fn messages_that_weaken_the_exchange_are_refused() {
        let cache = SaltedPasswords::new();
        let try_first = |text: &str| begin(&SHA_256).server_first(text.as_bytes(), &cache);
        let nonce = SHA_256.nonce;
        let foreign = "r=a-nonce-that-is-long-enough-but-not-ours,s=AAAA,i=4096";
        assert_eq!(try_first(foreign), Err(ScramError::Nonce));
        let same = format!("r={nonce},s=AAAA,i=4096");
        assert_eq!(try_first(&same), Err(ScramError::Nonce));
        for iterations in [0, 4095, MAX_ITERATIONS + 1] {
            let text = format!("r={nonce}x,s=AAAA,i={iterations}");
            assert_eq!(try_first(&text), Err(ScramError::Iterations { iterations }));
        }
        for text in ["", "m=x", "r=a", "r=a,s=A", "r=a,s=AAAA", "r=a,s=*,i=1", "r=a,s=AAAA,i=x"] {
            let malformed = matches!(try_first(text), Err(ScramError::Malformed { .. }));
            assert!(malformed, "{text}");
        }
        assert_eq!(cache.derivations(), 0);
    }

    #[test]
    fn separators_in_the_name_are_escaped_and_secrets_are_not_shown() {
        let client = Client::new(Mechanism::ScramSha1, "a=b,c", "secret", "N").unwrap();
        assert_eq!(client.first_message(), "n,,n=a=3Db=2Cc,r=N");
        assert!(!format!("{client:?}").contains("secret"));
    }
}
