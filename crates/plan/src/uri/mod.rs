//! Connection strings: parses `mongodb://` and `mongodb+srv://` into a [`Target`] without secrets
//! and separate [`Credentials`], which cannot be serialized or printed.
//!
//! Every option is either supported, listed in [`Target::unsupported_by_wire`], or an error with
//! the nearest known name. Callers resolve names and connect.

mod credentials;
mod error;
mod files;
pub(crate) mod names;
mod options;
mod percent;

pub use crate::redact::redact;
pub use credentials::{Credentials, Mechanism};
pub use error::UriError;
pub use names::option_names;

use credentials::{make_credentials, parse_userinfo};
use percent::decode;
pub use percent::encode;
use serde_with::SerializeDisplay;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// Port of a host without an explicit one.
pub const DEFAULT_PORT: u16 = 27017;

/// Address and options of the server, without secrets.
///
/// `Display` and `Serialize` produce a connection string without user, password and secret options,
/// which parses to an equal target.
#[derive(Clone, Debug, SerializeDisplay)]
pub struct Target {
    /// Addresses to start from, at least one; empty with `srv` until its records are looked up.
    pub hosts: Vec<Host>,
    /// Name to look up, for `mongodb+srv://`.
    pub srv: Option<SrvName>,
    /// Database in the path of the connection string.
    pub database: Option<String>,
    /// Options that apply to every backend.
    pub options: TargetOptions,
    /// Options that the driver backend supports but the wire backend does not: it refuses to start.
    pub unsupported_by_wire: Vec<UnsupportedOption>,
    /// Options with `directConnection=true` that the wire backend does not support if the server is
    /// a router.
    pub unsupported_on_router: Vec<UnsupportedOption>,
    /// Options as given, with canonical names, without authentication and secrets.
    parameters: Vec<(&'static str, String)>,
    /// Options with secret values, which only the driver gets.
    secrets: Secrets,
}

impl PartialEq for Target {
    /// Ignores secret options: two targets are equal if they are displayed equally.
    fn eq(&self, other: &Self) -> bool {
        self.hosts == other.hosts
            && self.srv == other.srv
            && self.database == other.database
            && self.options == other.options
            && self.unsupported_by_wire == other.unsupported_by_wire
            && self.unsupported_on_router == other.unsupported_on_router
    }
}

/// Values that must not be printed.
#[derive(Clone, Default)]
struct Secrets(Vec<(&'static str, String)>);

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Name with SRV records that list the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrvName {
    /// Host name in the connection string.
    pub host: String,
    /// Service in `_<service>._tcp.<host>`; `mongodb` unless `srvServiceName` says otherwise.
    pub service_name: String,
    /// Largest number of hosts to use, chosen at random; no limit if absent (or `srvMaxHosts=0`).
    pub max_hosts: Option<u32>,
}

/// Address of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Host name or IP address (IPv6 without brackets), lower case.
    Tcp {
        host: String,
        /// Above 0.
        port: u16,
    },
    /// Path of a Unix-domain socket.
    Unix(PathBuf),
}

/// Options that both backends support. Absent options were not given, so the server or the backend
/// decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetOptions {
    /// Required name of the replica set.
    pub replica_set: Option<String>,
    /// Whether to use only the given host, whatever its role.
    pub direct_connection: Option<bool>,
    /// Whether to encrypt. True with `tls=true`, `ssl=true`, any other `tls…` option, and
    /// `mongodb+srv://`, unless `tls=false`.
    pub tls: bool,
    /// PEM file with the trusted authorities; the system's if absent.
    pub tls_ca_file: Option<PathBuf>,
    /// PEM file with the client's certificate and key.
    pub tls_certificate_key_file: Option<PathBuf>,
    /// Whether to accept any certificate for any host name.
    pub tls_insecure: bool,
    /// Whether to accept certificates that do not verify.
    pub tls_allow_invalid_certificates: bool,
    /// Whether to accept certificates of another host name.
    pub tls_allow_invalid_hostnames: bool,
    /// Compressors to offer, most preferred first. Empty: none.
    pub compressors: Vec<Compressor>,
    /// Level for zlib, -1 (its default) to 9.
    pub zlib_compression_level: Option<i32>,
    /// Write concern of all writes.
    pub write_concern: WriteConcern,
    /// Read concern of all reads: `local`, `available`, `majority`, `linearizable` or `snapshot`.
    pub read_concern_level: Option<String>,
    /// Mode of `readPreference`. The wire backend supports it with `directConnection=true`;
    /// otherwise any mode except `primary` is also in [`Target::unsupported_by_wire`].
    pub read_preference: Option<String>,
    /// Longest time to open a connection, in milliseconds; 0 is no limit.
    pub connect_timeout_ms: Option<u64>,
    /// Longest time to wait on a socket, in milliseconds; 0 is no limit.
    pub socket_timeout_ms: Option<u64>,
    /// Longest time to find a usable server, in milliseconds, above 0.
    pub server_selection_timeout_ms: Option<u64>,
    /// Name of our connections in the server's log, at most 128 bytes.
    pub app_name: Option<String>,
    /// Upper bound of connections; no bound if absent (or `maxPoolSize=0`).
    pub max_pool_size: Option<u32>,
    /// Whether to send a read once more after a failure that allows it. Drivers do by default, both
    /// backends here do not.
    pub retry_reads: Option<bool>,
    /// Like `retry_reads` for writes, on servers that recognise a write that they have already
    /// applied.
    pub retry_writes: Option<bool>,
    /// `loadBalanced`. `true` is also in `unsupported_by_wire`.
    pub load_balanced: Option<bool>,
}

/// Compression of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// Snappy.
    Snappy,
    /// Zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// Name in connection strings and in the handshake.
    pub fn as_str(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }
}

/// The condition for acknowledging a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// Acknowledgement; the server's default if absent.
    pub w: Option<W>,
    /// Whether to wait for the journal.
    pub journal: Option<bool>,
    /// Longest time to wait for the acknowledgement, in milliseconds; 0 is no limit.
    pub wtimeout_ms: Option<u64>,
}

impl WriteConcern {
    /// Whether no part is set, so that no write concern is sent.
    pub fn is_empty(&self) -> bool {
        *self == WriteConcern::default()
    }
}

/// The `w` of a write concern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum W {
    /// This many members. 0, unacknowledged, is also in [`Target::unsupported_by_wire`].
    Number(u32),
    /// A majority of the voting members.
    Majority,
    /// A write concern that the replica set defines.
    Tag(String),
}

/// An option that the wire backend does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedOption {
    /// Canonical name.
    pub name: String,
    /// The given value; `***` for a secret.
    pub value: String,
    /// Why the wire backend does not support it.
    pub reason: String,
    /// Advice for the user.
    pub hint: String,
}

impl fmt::Display for UnsupportedOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}={}`: {}", self.name, self.value, self.reason)
    }
}

/// Whether a connection string has an option under any of its names. The string is not checked.
pub fn has_option(uri: &str, name: &str) -> bool {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    query.split(['&', ';']).filter_map(|piece| piece.split_once('=')).any(|(given, _)| {
        given.eq_ignore_ascii_case(name) || (name == "journal" && given.eq_ignore_ascii_case("j"))
    })
}

/// Adds an option, whose value needs no encoding, to a connection string. The string is not
/// checked.
pub fn with_option(uri: &str, name: &str, value: &str) -> String {
    let (base, query) = uri.split_once('?').unwrap_or((uri, ""));
    let hosts = base.split_once("://").map_or(base, |(_, hosts)| hosts);
    let slash = if hosts.contains('/') { "" } else { "/" };
    let ampersand = if query.is_empty() || query.ends_with(['&', ';']) { "" } else { "&" };
    format!("{base}{slash}?{query}{ampersand}{name}={value}")
}

/// Adds a database to a connection string without one. The string is not checked.
pub(crate) fn with_database(uri: &str, database: &str) -> String {
    let (base, query) = uri.split_at(uri.find('?').unwrap_or(uri.len()));
    format!("{}/{}{query}", base.trim_end_matches('/'), encode(database))
}

/// Splits a connection string into a target and, if it names a user, credentials.
///
/// # Errors
/// [`UriError`] for a text that is not a connection string, or that contains an unknown, malformed
/// or contradictory option. The error never contains the password.
pub fn parse(text: &str) -> Result<(Target, Option<Credentials>), UriError> {
    let (is_srv, rest) = if let Some(rest) = text.strip_prefix("mongodb://") {
        (false, rest)
    } else if let Some(rest) = text.strip_prefix("mongodb+srv://") {
        (true, rest)
    } else {
        return Err(UriError::Scheme);
    };
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let parsed = parse_parts(is_srv, authority, tail);
    // An `@` after the authority is usually the end of a password with an unescaped `/` or `?`: the
    // apparent host or option is then part of the password, so no error may quote it.
    let (path, _) = tail.split_once('?').unwrap_or((tail, ""));
    if path.contains('@') || (tail.contains('@') && parsed.is_err()) {
        return Err(UriError::UnescapedCredentials);
    }
    parsed
}

fn parse_parts(
    is_srv: bool,
    authority: &str,
    tail: &str,
) -> Result<(Target, Option<Credentials>), UriError> {
    if authority.is_empty() && path_of(tail).to_ascii_lowercase().ends_with(".sock") {
        return Err(UriError::Socket);
    }
    let (userinfo, host_list) = match authority.rsplit_once('@') {
        Some((userinfo, hosts)) => (Some(userinfo), hosts),
        None => (None, authority),
    };
    let (_, query) = tail.split_once('?').unwrap_or((tail, ""));
    let path = path_of(tail);
    let user = userinfo.map(parse_userinfo).transpose()?;
    let database = parse_database(path.strip_prefix('/').unwrap_or(path))?;
    let given = options::parse_query(query)?;
    let parsed = options::interpret(&given)?;
    let mut target = Target {
        hosts: Vec::new(),
        srv: None,
        database,
        options: parsed.options,
        unsupported_by_wire: parsed.unsupported_by_wire,
        unsupported_on_router: Vec::new(),
        parameters: parsed.parameters,
        secrets: Secrets(parsed.secrets),
    };
    if is_srv {
        target.srv = Some(parse_srv_host(host_list, &parsed.srv)?);
    } else {
        if parsed.srv.is_given() {
            return Err(UriError::Needs {
                name: parsed.srv.first_name(),
                needs: "`mongodb+srv://`",
            });
        }
        target.hosts = host_list.split(',').map(parse_host).collect::<Result<_, _>>()?;
    }
    if target.options.direct_connection == Some(true) {
        // All reads go to the one server. A router chooses the member, by the mode in the reads.
        let unsupported = std::mem::take(&mut target.unsupported_by_wire);
        for option in unsupported {
            if !options::CHOOSE_MEMBER.contains(&option.name.as_str()) {
                target.unsupported_by_wire.push(option);
            } else if option.name != "readPreference" {
                target
                    .unsupported_on_router
                    .push(UnsupportedOption { reason: options::MODE_ONLY.into(), ..option });
            }
        }
    }
    target.options.tls = parsed.tls.unwrap_or(is_srv || parsed.tls_is_implied);
    check_together(&target, &parsed.srv)?;
    let credentials = make_credentials(user, parsed.authentication, &target)?;
    Ok((target, credentials))
}

/// The part between hosts and options.
fn path_of(tail: &str) -> &str {
    tail.split_once('?').map_or(tail, |(path, _)| path)
}

fn parse_database(path: &str) -> Result<Option<String>, UriError> {
    if path.is_empty() {
        return Ok(None);
    }
    let database = decode(path).ok_or_else(|| UriError::PercentEncoding { text: path.into() })?;
    match database.chars().find(|c| ['/', '\\', ' ', '"', '$', '.', '\0'].contains(c)) {
        Some(character) => Err(UriError::Database { database, character }),
        None => Ok(Some(database)),
    }
}

/// The part of a host for messages: the text after a colon may be a password, if the host was
/// forgotten.
fn shown_host(text: &str) -> &str {
    let is_of_address = |byte: u8| byte.is_ascii_hexdigit() || b"[:.".contains(&byte);
    match text.split_once(']') {
        Some((address, _)) if address.bytes().all(is_of_address) => &text[..=address.len()],
        _ => text.split_once(':').map_or(text, |(before, _)| before),
    }
}

fn parse_host(text: &str) -> Result<Host, UriError> {
    let bad = |reason| UriError::Host { host: shown_host(text).into(), reason };
    if text.is_empty() {
        return Err(UriError::EmptyHost);
    }
    let is_socket = text.to_ascii_lowercase().ends_with(".sock");
    if is_socket || text.contains('%') {
        let path = decode(text).ok_or_else(|| bad("its percent-encoding is not valid"))?;
        return if is_socket {
            Ok(Host::Unix(PathBuf::from(path)))
        } else {
            Err(bad("a Unix-domain socket ends with `.sock`, and a host name does not contain `%`"))
        };
    }
    let (host, port) =
        split_port(text).ok_or_else(|| bad("an IPv6 address is written as `[::1]`"))?;
    if host.is_empty() {
        return Err(UriError::EmptyHost);
    }
    if host.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(bad("it contains white space"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(digits) => match digits.parse::<u16>() {
            Ok(port) if port > 0 && digits.bytes().all(|b| b.is_ascii_digit()) => port,
            _ => return Err(bad("the port is a number from 1 to 65535")),
        },
    };
    Ok(Host::Tcp { host: host.to_ascii_lowercase(), port })
}

/// Host and port text of `host`, `host:port`, `[v6]` or `[v6]:port`; `None` for a bare or broken
/// IPv6 address.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, after) = rest.split_once(']')?;
        address.split('%').next().unwrap_or(address).parse::<std::net::Ipv6Addr>().ok()?;
        return match after {
            "" => Some((address, None)),
            _ => Some((address, Some(after.strip_prefix(':')?))),
        };
    }
    match text.split_once(':') {
        None => Some((text, None)),
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
    }
}

fn parse_srv_host(text: &str, srv: &options::SrvOptions) -> Result<SrvName, UriError> {
    let bad = |reason| UriError::Host { host: shown_host(text).into(), reason };
    if text.contains(',') {
        return Err(bad("`mongodb+srv://` takes exactly one host"));
    }
    if text.contains(':') {
        return Err(bad("`mongodb+srv://` does not take a port, which comes from the SRV record"));
    }
    match parse_host(text)? {
        Host::Unix(_) => Err(bad("`mongodb+srv://` takes a host name, not a socket")),
        Host::Tcp { host, .. } if host.parse::<std::net::Ipv4Addr>().is_ok() => {
            Err(bad("`mongodb+srv://` takes a host name, not an address"))
        }
        Host::Tcp { host, .. } => Ok(SrvName {
            host,
            service_name: srv.service_name.clone().unwrap_or_else(|| "mongodb".into()),
            max_hosts: srv.max_hosts.filter(|&hosts| hosts > 0),
        }),
    }
}

/// Checks rules about several parts.
fn check_together(target: &Target, srv: &options::SrvOptions) -> Result<(), UriError> {
    let options = &target.options;
    let conflict = |first, second| Err(UriError::Conflict { first, second });
    if options.direct_connection == Some(true) {
        if target.srv.is_some() {
            return conflict("`directConnection=true`", "`mongodb+srv://`");
        }
        if target.hosts.len() > 1 {
            return conflict("`directConnection=true`", "several hosts");
        }
    }
    if srv.max_hosts.is_some_and(|hosts| hosts > 0) && options.replica_set.is_some() {
        return conflict("`srvMaxHosts`", "`replicaSet`");
    }
    if options.load_balanced == Some(true) {
        if options.replica_set.is_some() {
            return conflict("`loadBalanced=true`", "`replicaSet`");
        }
        if options.direct_connection == Some(true) {
            return conflict("`loadBalanced=true`", "`directConnection=true`");
        }
        if target.hosts.len() > 1 {
            return conflict("`loadBalanced=true`", "several hosts");
        }
        if srv.max_hosts.is_some_and(|hosts| hosts > 0) {
            return conflict("`loadBalanced=true`", "`srvMaxHosts`");
        }
    }
    Ok(())
}

impl Target {
    /// Applies the options of the TXT record of a `mongodb+srv://` name; options in the connection
    /// string take precedence.
    ///
    /// # Errors
    /// [`UriError::Needs`] if the record contains options other than `authSource`, `replicaSet` and
    /// `loadBalanced`, the only permitted ones.
    pub fn apply_txt_record(
        &mut self,
        credentials: Option<&mut Credentials>,
        record: &str,
    ) -> Result<(), UriError> {
        let given = options::parse_query(record)?;
        for (name, _) in &given {
            if !["authSource", "replicaSet", "loadBalanced"].contains(name) {
                return Err(UriError::Needs {
                    name,
                    needs: "to be in the connection string, not in a TXT record",
                });
            }
        }
        let parsed = options::interpret(&given)?;
        if let (Some(credentials), Some(source)) = (credentials, parsed.authentication.source)
            && !credentials.source_is_explicit
        {
            credentials.source = Some(source);
        }
        if self.options.replica_set.is_none() {
            self.options.replica_set = parsed.options.replica_set;
        }
        if self.options.load_balanced.is_none() {
            self.options.load_balanced = parsed.options.load_balanced;
            self.unsupported_by_wire.extend(parsed.unsupported_by_wire);
        }
        for (name, value) in parsed.parameters {
            if !self.parameters.iter().any(|(given, _)| *given == name) {
                self.parameters.push((name, value));
            }
        }
        Ok(())
    }

    /// The target with the hosts that the records of its `mongodb+srv://` name list, instead of the
    /// name.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Vec<Host>) -> Self {
        self.hosts = hosts;
        self.srv = None;
        self.parameters.retain(|(name, _)| !name.starts_with("srv"));
        if self.options.tls && !self.parameters.iter().any(|(name, _)| *name == "tls") {
            self.parameters.push(("tls", "true".to_owned()));
        }
        self
    }

    /// Options of a driver's connection pool and monitoring, as given. They have no effect on the
    /// wire backend.
    pub fn only_of_drivers(&self) -> impl Iterator<Item = String> {
        let given = self.parameters.iter();
        let found = given.filter(|(name, _)| options::ONLY_OF_DRIVERS.contains(name));
        found.map(|(name, value)| format!("`{name}={value}`"))
    }

    /// Connection string for the official driver: without user and password, which are passed
    /// separately, but with all other options including secret ones. Must not be printed.
    pub fn to_driver_uri(&self) -> String {
        let secrets = self.secrets.0.iter();
        self.uri(self.parameters.iter().chain(secrets))
    }

    fn uri<'a>(&'a self, parameters: impl Iterator<Item = &'a (&'static str, String)>) -> String {
        let mut text = String::from(match &self.srv {
            Some(_) => "mongodb+srv://",
            None => "mongodb://",
        });
        match &self.srv {
            Some(srv) => text.push_str(&srv.host),
            None => {
                let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
                text.push_str(&hosts.join(","));
            }
        }
        text.push('/');
        if let Some(database) = &self.database {
            text.push_str(&encode(database));
        }
        for (index, (name, value)) in parameters.enumerate() {
            text.push(if index == 0 { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            text.push_str(&options::encode_value(value));
        }
        text
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.uri(self.parameters.iter()))
    }
}

impl Host {
    /// Whether this host is reachable only on this machine: `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let Host::Tcp { host, .. } = self else {
            return false;
        };
        let address = host.parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Whether connections to it stay on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        matches!(self, Host::Unix(_)) || self.is_loopback()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Tcp { host, port } if host.contains(':') => {
                write!(formatter, "[{host}]:{port}")
            }
            Host::Tcp { host, port } => write!(formatter, "{host}:{port}"),
            Host::Unix(path) => formatter.write_str(&encode(&path.to_string_lossy())),
        }
    }
}

#[cfg(test)]
mod tests;
