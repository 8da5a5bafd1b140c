//! The first commands on a connection: `hello`, and the commands with the SCRAM messages.
//!
//! Writes the requests and parses the answers into [`Hello`].

use crate::bson::{BsonError, Document, Element, ElementWriter, Value, write_document};
use crate::compress::Compressor;
use crate::frame::write_message;
use thiserror::Error;

/// Oldest protocol that has `OP_MSG`: MongoDB 3.6.
pub const MIN_WIRE_VERSION: i32 = 6;

/// Why a server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The answer is malformed.
    #[error("handshake reply is not a valid document")]
    Bson(#[source] BsonError),
    /// A field has an unexpected type.
    #[error("field `{field}` of the handshake reply has an unexpected type")]
    Type { field: &'static str },
    /// The server supports only outdated protocol versions.
    #[error(
        "server supports wire version {found}; {MIN_WIRE_VERSION} (MongoDB 3.6) or later is required"
    )]
    TooOld {
        /// Newest wire version of the server.
        found: i32,
    },
}

impl From<BsonError> for HandshakeError {
    fn from(error: BsonError) -> Self {
        HandshakeError::Bson(error)
    }
}

/// Content of a `hello` command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HelloOptions<'a> {
    /// Name of the application for the server's logs, at most 128 bytes.
    pub application: Option<&'a str>,
    /// Offered compressors, best first.
    pub compressors: &'a [Compressor],
    /// User whose mechanisms are requested, as `database.name`.
    pub mechanisms_of: Option<&'a str>,
    /// Whether to use the command's name before MongoDB 4.4.2.
    pub legacy: bool,
}

/// Appends the `hello` command as one message.
pub fn write_hello(out: &mut Vec<u8>, request_id: i32, options: &HelloOptions<'_>) {
    write_command(out, request_id, |writer| {
        if options.legacy {
            writer.i32("isMaster", 1).boolean("helloOk", true);
        } else {
            writer.i32("hello", 1);
        }
        writer.document("client", |client| write_client(client, options.application));
        let names = options.compressors.iter().map(|compressor| compressor.name());
        writer.array("compression", |array| {
            for (index, name) in names.enumerate() {
                array.string(&index.to_string(), name);
            }
        });
        if let Some(user) = options.mechanisms_of {
            writer.string("saslSupportedMechs", user);
        }
        writer.string("$db", "admin");
    });
}

fn write_client(client: &mut ElementWriter<'_>, application: Option<&str>) {
    if let Some(name) = application {
        client.document("application", |application| {
            application.string("name", name);
        });
    }
    client.document("driver", |driver| {
        driver.string("name", "mongodyno");
        driver.string("version", env!("CARGO_PKG_VERSION"));
    });
    client.document("os", |os| {
        os.string("type", operating_system());
        os.string("architecture", std::env::consts::ARCH);
    });
}

/// The operating system's name, as servers expect it.
fn operating_system() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    }
}

/// Appends the command that authenticates by the client's certificate. Without a user name, the server uses the
/// certificate's subject.
pub fn write_authenticate(out: &mut Vec<u8>, request_id: i32, user: Option<&str>) {
    write_command(out, request_id, |writer| {
        writer.i32("authenticate", 1);
        writer.string("mechanism", "MONGODB-X509");
        if let Some(user) = user {
            writer.string("user", user);
        }
        writer.string("$db", "$external");
    });
}

/// Appends a command that begins an authentication.
pub fn write_sasl_start(
    out: &mut Vec<u8>,
    request_id: i32,
    database: &str,
    mechanism: &str,
    payload: &[u8],
) {
    write_command(out, request_id, |writer| {
        writer.i32("saslStart", 1).string("mechanism", mechanism);
        writer.binary("payload", payload);
        // Avoids the empty exchange at the end; older servers ignore it.
        writer.document("options", |options| {
            options.boolean("skipEmptyExchange", true);
        });
        writer.string("$db", database);
    });
}

/// Appends a command that continues an authentication.
pub fn write_sasl_continue(
    out: &mut Vec<u8>,
    request_id: i32,
    database: &str,
    conversation_id: i32,
    payload: &[u8],
) {
    write_command(out, request_id, |writer| {
        writer.i32("saslContinue", 1).i32("conversationId", conversation_id);
        writer.binary("payload", payload).string("$db", database);
    });
}

fn write_command(
    out: &mut Vec<u8>,
    request_id: i32,
    elements: impl FnOnce(&mut ElementWriter<'_>),
) {
    let mut document = Vec::new();
    write_document(&mut document, elements);
    write_message(out, request_id, 0, &document);
}

/// The server's answer to an authentication step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaslReply<'a> {
    /// ID of the conversation.
    pub conversation_id: i32,
    /// Whether the server has accepted the user.
    pub done: bool,
    pub payload: &'a [u8],
}

impl<'a> SaslReply<'a> {
    /// Parses the answer to a successful SASL command.
    pub fn read(document: Document<'a>) -> Result<Self, HandshakeError> {
        let mut reply = SaslReply { conversation_id: 0, done: false, payload: &[] };
        for element in document.elements() {
            let element = element?;
            match (element.name, element.value()?) {
                (b"conversationId", Value::Int32(id)) => reply.conversation_id = id,
                (b"done", Value::Boolean(done)) => reply.done = done,
                (b"payload", Value::Binary { bytes, .. }) => reply.payload = bytes,
                (b"payload", Value::String(text)) => reply.payload = text.as_bytes(),
                (b"conversationId", _) => return Err(unexpected("conversationId")),
                (b"done", _) => return Err(unexpected("done")),
                (b"payload", _) => return Err(unexpected("payload")),
                _ => {}
            }
        }
        Ok(reply)
    }
}

/// Role of a server in its deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Standalone,
    /// Router of a sharded cluster.
    Mongos,
    /// The replica set member that accepts writes.
    Primary,
    Secondary,
    /// A replica set member that cannot serve operations (starting, arbiter, not initiated).
    Other,
}

impl Role {
    /// Name, such as `primary`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Standalone => "standalone",
            Role::Mongos => "mongos",
            Role::Primary => "primary",
            Role::Secondary => "secondary",
            Role::Other => "other",
        }
    }
}

/// Answer of a server to `hello`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Newest supported wire version.
    pub max_wire_version: i32,
    /// Whether it accepts writes.
    pub is_writable_primary: bool,
    pub secondary: bool,
    pub is_mongos: bool,
    /// Whether it was started as a replica set member but has no configuration: the set is not initiated, or has
    /// removed it.
    pub is_uninitiated_member: bool,
    /// Whether it votes in a replica set without holding data.
    pub is_arbiter: bool,
    pub set_name: Option<String>,
    /// Members of its replica set, as `host:port`.
    pub hosts: Vec<String>,
    /// The primary that it knows, as `host:port`.
    pub primary: Option<String>,
    /// Its own name in the replica set, as `host:port`.
    pub me: Option<String>,
    /// Compressors that both sides support, in the server's order.
    pub compressors: Vec<Compressor>,
    /// Mechanisms of the requested user; `None` if not reported.
    pub mechanisms: Option<Vec<String>>,
    /// Whether it supports sessions.
    pub has_sessions: bool,
}

impl Hello {
    /// Parses the answer to a successful `hello`. Rejects servers that are too old.
    pub fn read(document: Document<'_>) -> Result<Self, HandshakeError> {
        let mut hello = Hello::default();
        for element in document.elements() {
            hello.read_element(&element?)?;
        }
        if hello.max_wire_version < MIN_WIRE_VERSION {
            let found = hello.max_wire_version;
            return Err(HandshakeError::TooOld { found });
        }
        Ok(hello)
    }

    fn read_element(&mut self, element: &Element<'_>) -> Result<(), HandshakeError> {
        match element.name {
            b"maxWireVersion" => {
                let version = element.number()?.and_then(|version| i32::try_from(version).ok());
                self.max_wire_version = version.ok_or(unexpected("maxWireVersion"))?;
            }
            b"isWritablePrimary" => {
                self.is_writable_primary |= flag(element, "isWritablePrimary")?;
            }
            b"ismaster" => self.is_writable_primary |= flag(element, "ismaster")?,
            b"secondary" => self.secondary = flag(element, "secondary")?,
            b"isreplicaset" => self.is_uninitiated_member = flag(element, "isreplicaset")?,
            b"arbiterOnly" => self.is_arbiter = flag(element, "arbiterOnly")?,
            b"msg" => self.is_mongos = text(element, "msg")? == "isdbgrid",
            b"setName" => self.set_name = Some(text(element, "setName")?),
            b"hosts" => self.hosts = texts(element, "hosts")?,
            b"primary" => self.primary = Some(text(element, "primary")?),
            b"me" => self.me = Some(text(element, "me")?),
            b"compression" => {
                let names = texts(element, "compression")?;
                let known = names.iter().filter_map(|name| Compressor::from_name(name));
                self.compressors = known.collect();
            }
            b"saslSupportedMechs" => {
                self.mechanisms = Some(texts(element, "saslSupportedMechs")?);
            }
            b"logicalSessionTimeoutMinutes" => {
                self.has_sessions = element.number()?.is_some();
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether it applies a write with a session and a number only once, however often it is sent. Standalone servers
    /// do not.
    pub fn takes_retryable_writes(&self) -> bool {
        self.has_sessions && (self.is_mongos || self.set_name.is_some())
    }

    /// Role of the server in its deployment.
    pub fn role(&self) -> Role {
        if self.is_mongos {
            Role::Mongos
        } else if self.is_uninitiated_member {
            Role::Other
        } else if self.set_name.is_none() {
            Role::Standalone
        } else if self.is_writable_primary {
            Role::Primary
        } else if self.secondary {
            Role::Secondary
        } else {
            Role::Other
        }
    }
}

fn unexpected(field: &'static str) -> HandshakeError {
    HandshakeError::Type { field }
}

fn flag(element: &Element<'_>, field: &'static str) -> Result<bool, HandshakeError> {
    Ok(element.number()?.ok_or(unexpected(field))? != 0)
}

fn text(element: &Element<'_>, field: &'static str) -> Result<String, HandshakeError> {
    match element.value()? {
        Value::String(text) => Ok(text.to_owned()),
        _ => Err(unexpected(field)),
    }
}

fn texts(element: &Element<'_>, field: &'static str) -> Result<Vec<String>, HandshakeError> {
    let array = element.document()?.ok_or(unexpected(field))?;
    array.elements().map(|element| text(&element?, field)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame;
    use ::bson::doc;

    fn sent(write: impl FnOnce(&mut Vec<u8>)) -> ::bson::Document {
        let mut out = Vec::new();
        write(&mut out);
        let frame = frame::parse(&out).unwrap().unwrap();
        assert_eq!((frame.length, frame.request_id), (out.len(), 5));
        ::bson::Document::from_reader(frame.message().unwrap().document).unwrap()
    }

    fn read(document: &::bson::Document) -> Result<Hello, HandshakeError> {
        let bytes = document.to_vec().unwrap();
        Hello::read(Document::new(&bytes).unwrap())
    }

    #[test]
    fn hello_describes_the_client_and_its_requests() {
        let client = doc! {
            "application": { "name": "bench" },
            "driver": { "name": "mongodyno", "version": env!("CARGO_PKG_VERSION") },
            "os": { "type": operating_system(), "architecture": std::env::consts::ARCH },
        };
        let options = HelloOptions {
            application: Some("bench"),
            compressors: &[Compressor::Zstd, Compressor::Snappy],
            mechanisms_of: Some("admin.me"),
            legacy: false,
        };
        let expected = doc! {
            "hello": 1, "client": client, "compression": ["zstd", "snappy"],
            "saslSupportedMechs": "admin.me", "$db": "admin",
        };
        assert_eq!(sent(|out| write_hello(out, 5, &options)), expected);
    }

    #[test]
    fn the_legacy_form_has_the_old_name() {
        let options = HelloOptions { legacy: true, ..HelloOptions::default() };
        let hello = sent(|out| write_hello(out, 5, &options));
        assert_eq!(hello.keys().next().map(String::as_str), Some("isMaster"));
        assert_eq!(hello.get("helloOk"), Some(&true.into()));
        assert!(hello.get_document("client").unwrap().get("application").is_none());
        assert!(!hello.contains_key("saslSupportedMechs"));
    }

    #[test]
    fn a_certificate_authenticates_with_or_without_a_name() {
        let expected = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
        assert_eq!(sent(|out| write_authenticate(out, 5, None)), expected);
        let named = sent(|out| write_authenticate(out, 5, Some("CN=a")));
        assert_eq!(named.get_str("user").unwrap(), "CN=a");
    }

    #[test]
    fn sasl_commands_carry_the_payload() {
        let payload = |bytes: &[u8]| ::bson::Binary {
            subtype: ::bson::spec::BinarySubtype::Generic,
            bytes: bytes.to_vec(),
        };
        let start = sent(|out| write_sasl_start(out, 5, "admin", "SCRAM-SHA-1", b"n,,"));
        let expected = doc! {
            "saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": payload(b"n,,"),
            "options": { "skipEmptyExchange": true }, "$db": "admin",
        };
        assert_eq!(start, expected);
        let next = sent(|out| write_sasl_continue(out, 5, "admin", 3, b"c="));
        let expected = doc! {
            "saslContinue": 1, "conversationId": 3, "payload": payload(b"c="), "$db": "admin",
        };
        assert_eq!(next, expected);
    }

    #[test]
    fn sasl_answers_are_read() {
        let bytes =
            doc! { "conversationId": 7, "done": true, "payload": "v=x", "ok": 1 }.to_vec().unwrap();
        let reply = SaslReply::read(Document::new(&bytes).unwrap()).unwrap();
        let expected = SaslReply { conversation_id: 7, done: true, payload: b"v=x" };
        assert_eq!(reply, expected);
        let bytes = doc! { "done": 1 }.to_vec().unwrap();
        let error = SaslReply::read(Document::new(&bytes).unwrap()).unwrap_err();
        assert_eq!(error, HandshakeError::Type { field: "done" });
    }

    #[test]
    fn a_replica_set_member_describes_itself() {
        let hello = read(&doc! {
            "helloOk": true, "hosts": ["a:1", "b:2"], "setName": "rs0", "setVersion": 1,
            "isWritablePrimary": true, "secondary": false, "primary": "a:1", "me": "a:1",
            "maxBsonObjectSize": 1000, "maxMessageSizeBytes": 2000, "maxWriteBatchSize": 10,
            "localTime": ::bson::DateTime::now(), "maxWireVersion": 21, "minWireVersion": 0,
            "compression": ["zstd", "unheard-of", "zlib"], "saslSupportedMechs": ["SCRAM-SHA-256"],
            "ok": 1.0,
        })
        .unwrap();
        let expected = Hello {
            max_wire_version: 21,
            is_writable_primary: true,
            set_name: Some("rs0".into()),
            hosts: vec!["a:1".into(), "b:2".into()],
            primary: Some("a:1".into()),
            me: Some("a:1".into()),
            compressors: vec![Compressor::Zstd, Compressor::Zlib { level: -1 }],
            mechanisms: Some(vec!["SCRAM-SHA-256".into()]),
            ..Hello::default()
        };
        assert_eq!(hello, expected);
    }

    #[test]
    fn the_role_follows_from_the_answer() {
        for (document, role) in [
            (doc! { "isWritablePrimary": true }, Role::Standalone),
            (doc! { "ismaster": true, "msg": "isdbgrid" }, Role::Mongos),
            (doc! { "setName": "r", "ismaster": true }, Role::Primary),
            (doc! { "setName": "r", "secondary": true }, Role::Secondary),
            (doc! { "setName": "r", "arbiterOnly": true }, Role::Other),
            (doc! { "isreplicaset": true }, Role::Other),
        ] {
            let mut document = document;
            document.insert("maxWireVersion", 6);
            assert_eq!(read(&document).unwrap().role(), role, "{document}");
        }
    }

    #[test]
    fn old_servers_and_nonsense_are_refused() {
        let old = read(&doc! { "maxWireVersion": 5 });
        assert_eq!(old, Err(HandshakeError::TooOld { found: 5 }));
        assert_eq!(read(&doc! {}), Err(HandshakeError::TooOld { found: 0 }));
        for (document, field) in [
            (doc! { "hosts": "a" }, "hosts"),
            (doc! { "hosts": [1] }, "hosts"),
            (doc! { "maxWireVersion": i64::MAX }, "maxWireVersion"),
            (doc! { "setName": 1 }, "setName"),
        ] {
            assert_eq!(read(&document), Err(HandshakeError::Type { field }));
        }
    }
}
