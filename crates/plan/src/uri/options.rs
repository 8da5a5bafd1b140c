//! The options of a connection string: names, values, and support by the wire backend. The parent
//! module checks rules between options and hosts.

use super::names::{canonical, option_names};
use super::percent::{decode, encode_except};
use super::{Compressor, Mechanism, TargetOptions, UnsupportedOption, UriError, W};
use crate::nearest::nearest;
use std::path::PathBuf;

/// Options whose values are never printed.
const SECRET_NAMES: [&str; 3] =
    ["authMechanismProperties", "proxyPassword", "tlsCertificateKeyFilePassword"];

/// Options that select the members of a replica set for reads.
pub(super) const CHOOSE_MEMBER: [&str; 3] =
    ["maxStalenessSeconds", "readPreference", "readPreferenceTags"];

/// Why the wire backend refuses to select members other than by `readPreference` on a router.
pub(super) const MODE_ONLY: &str =
    "the wire backend sends only the mode of `readPreference` to a router";

/// Mechanisms that MongoDB supports but neither backend does.
const OTHER_MECHANISMS: [&str; 2] = ["GSSAPI", "MONGODB-CR"];

/// Options about the lookup of `mongodb+srv://` names.
#[derive(Default)]
pub(super) struct SrvOptions {
    pub(super) service_name: Option<String>,
    pub(super) max_hosts: Option<u32>,
}

impl SrvOptions {
    pub(super) fn is_given(&self) -> bool {
        self.service_name.is_some() || self.max_hosts.is_some()
    }

    pub(super) fn first_name(&self) -> &'static str {
        match self.service_name {
            Some(_) => "srvServiceName",
            None => "srvMaxHosts",
        }
    }
}

/// Options about authentication; they have no effect without a user.
#[derive(Default)]
pub(super) struct Authentication {
    pub(super) source: Option<String>,
    pub(super) mechanism: Option<Mechanism>,
    pub(super) properties: Option<String>,
}

/// All options of a connection string, interpreted.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) options: TargetOptions,
    pub(super) srv: SrvOptions,
    pub(super) authentication: Authentication,
    pub(super) unsupported_by_wire: Vec<UnsupportedOption>,
    /// For display and for the driver: without authentication and secrets.
    pub(super) parameters: Vec<(&'static str, String)>,
    pub(super) secrets: Vec<(&'static str, String)>,
    /// `tls` or `ssl` as given.
    pub(super) tls: Option<bool>,
    /// Whether another `tls…` option is given, which makes no sense without encryption.
    pub(super) tls_is_implied: bool,
}

/// Encodes a value readably, such that it parses to the same value.
pub(super) fn encode_value(value: &str) -> String {
    encode_except(value, ",:/")
}

/// Splits `name=value&…` into canonical names and decoded values, each name once
/// (`readPreferenceTags` as often as given).
pub(super) fn parse_query(query: &str) -> Result<Vec<(&'static str, String)>, UriError> {
    let mut given: Vec<(&'static str, String)> = Vec::new();
    for piece in query.split(['&', ';']).filter(|piece| !piece.is_empty()) {
        let (name, value) =
            piece.split_once('=').ok_or_else(|| UriError::OptionSyntax { text: piece.into() })?;
        let name = canonical(name).ok_or_else(|| UriError::UnknownOption {
            name: name.into(),
            nearest: nearest(name, option_names()).map(Into::into),
        })?;
        let value = decode(value).ok_or_else(|| UriError::PercentEncoding { text: name.into() })?;
        match given.iter().find(|(known, _)| *known == name) {
            Some(_) if name == "readPreferenceTags" => given.push((name, value)),
            Some((_, earlier)) if *earlier == value => {}
            Some(_) => return Err(UriError::Repeated { name }),
            None => given.push((name, value)),
        }
    }
    Ok(given)
}

/// Interprets all options, and checks rules about options alone.
pub(super) fn interpret(given: &[(&'static str, String)]) -> Result<Parsed, UriError> {
    let mut parsed = Parsed::default();
    for (name, value) in given {
        // Tags may be empty, which means any member.
        if value.is_empty() && *name != "readPreferenceTags" {
            return Err(invalid(name, value, "a value"));
        }
        let refusal = interpret_one(&mut parsed, name, value)?;
        let shown = if SECRET_NAMES.contains(name) { "***" } else { value };
        if let Some((reason, hint)) = neither(name).filter(|_| !asks_for_nothing(name, value)) {
            return Err(UriError::UnsupportedOption { name, value: shown.into(), reason, hint });
        }
        if let Some((reason, hint)) = refusal {
            parsed.unsupported_by_wire.push(UnsupportedOption {
                name: (*name).into(),
                value: shown.into(),
                reason: reason.into(),
                hint: hint.into(),
            });
        }
        if asks_for_nothing(name, value) {
            // The driver does not know all of them.
            continue;
        }
        parsed.tls_is_implied |= name.starts_with("tls") && *name != "tls";
        if name.starts_with("auth") {
            continue;
        }
        let is_secret = SECRET_NAMES.contains(name);
        let of_kind = if is_secret { &mut parsed.secrets } else { &mut parsed.parameters };
        of_kind.push((name, value.clone()));
    }
    check(&parsed)?;
    Ok(parsed)
}

fn check(parsed: &Parsed) -> Result<(), UriError> {
    let options = &parsed.options;
    let conflict = |first, second| Err(UriError::Conflict { first, second });
    if parsed.tls == Some(false) && parsed.tls_is_implied {
        return conflict("`tls=false`", "another `tls…` option");
    }
    if options.tls_insecure && options.tls_allow_invalid_certificates {
        return conflict("`tlsInsecure`", "`tlsAllowInvalidCertificates`");
    }
    if options.tls_insecure && options.tls_allow_invalid_hostnames {
        return conflict("`tlsInsecure`", "`tlsAllowInvalidHostnames`");
    }
    let concern = &options.write_concern;
    if concern.w == Some(W::Number(0)) && concern.journal == Some(true) {
        return conflict("`w=0`", "`journal=true`");
    }
    let mode = options.read_preference.as_deref();
    if matches!(mode, None | Some("primary")) {
        let mut given = parsed.parameters.iter().map(|(name, _)| *name);
        let chosen = given.find(|name| CHOOSE_MEMBER.contains(name) && *name != "readPreference");
        if let Some(name) = chosen {
            return Err(UriError::Needs { name, needs: "a `readPreference` other than `primary`" });
        }
    }
    Ok(())
}

/// Why the wire backend refuses an option, with advice.
type Refusal = Option<(&'static str, &'static str)>;

const USE_DRIVER: &str = "remove it, or use `--backend driver`";
/// Options of a driver's connection pool and of its monitoring, which do not change what the wire
/// backend does. Connection strings of hosts contain some of them.
pub(super) const ONLY_OF_DRIVERS: [&str; 7] = [
    "heartbeatFrequencyMS",
    "localThresholdMS",
    "maxConnecting",
    "maxIdleTimeMS",
    "minPoolSize",
    "serverMonitoringMode",
    "waitQueueTimeoutMS",
];

const PRIMARY_ONLY: Refusal = Some(("the wire backend reads from the primary only", USE_DRIVER));
const ONE_RETRY: &str = "the wire backend retries an operation at most once";

/// Whether a value asks for the default behaviour of both backends.
fn asks_for_nothing(name: &str, value: &str) -> bool {
    match name {
        // The documents contain no UUIDs.
        "uuidRepresentation" => true,
        "tlsDisableCertificateRevocationCheck" | "tlsDisableOCSPEndpointCheck" => value == "true",
        "enableOverloadRetargeting" | "serverSelectionTryOnce" | "tlsAllowInvalidHostnames" => {
            value == "false"
        }
        "serverMonitoringMode" => value.eq_ignore_ascii_case("auto"),
        "maxIdleTimeMS" | "maxLifeTimeMS" | "maxPoolSize" | "minPoolSize" | "socketTimeoutMS" => {
            value == "0"
        }
        "maxStalenessSeconds" => value == "-1",
        _ => false,
    }
}

const REMOVE: &str = "remove it";

/// Options that neither backend supports, with the reason and advice.
const NEITHER: [(&[&str], &str, &str); 7] = [
    (
        &["proxyHost", "proxyPassword", "proxyPort", "proxyUsername"],
        "neither backend connects through a proxy",
        REMOVE,
    ),
    (
        &["fsync", "safe", "slaveOk"],
        "it is an option of drivers that are no longer supported",
        "remove it; the write concern is set by `w`, `journal` and `wTimeoutMS`",
    ),
    (
        &["gssapiServiceName"],
        "it belongs to an authentication mechanism that is not supported",
        REMOVE,
    ),
    (
        &["serverSelectionTryOnce"],
        "the search for a server lasts until `serverSelectionTimeoutMS`",
        REMOVE,
    ),
    (
        &["tlsDisableCertificateRevocationCheck", "tlsDisableOCSPEndpointCheck"],
        "neither backend checks whether certificates are revoked",
        REMOVE,
    ),
    (
        &["maxLifeTimeMS", "waitQueueMultiple"],
        "clients keep their connections and do not queue for them",
        REMOVE,
    ),
    (
        &["timeoutMS"],
        "the plan sets the time limit of an operation",
        "remove it and use `--timeout`",
    ),
];

/// Why neither backend supports an option, with advice.
fn neither(name: &str) -> Refusal {
    let &(_, reason, hint) = NEITHER.iter().find(|(names, ..)| names.contains(&name))?;
    Some((reason, hint))
}

/// Stores one option, and returns whether the wire backend refuses it.
fn interpret_one(
    parsed: &mut Parsed,
    name: &'static str,
    value: &str,
) -> Result<Refusal, UriError> {
    let options = &mut parsed.options;
    match name {
        "appName" if value.len() > 128 => return Err(invalid(name, value, "at most 128 bytes")),
        "appName" => options.app_name = Some(value.into()),
        "authMechanism" => parsed.authentication.mechanism = mechanism(value)?,
        "authMechanismProperties" => parsed.authentication.properties = Some(value.into()),
        "authSource" => parsed.authentication.source = Some(value.into()),
        "compressors" => options.compressors = compressors(name, value)?,
        "connectTimeoutMS" => options.connect_timeout_ms = Some(number(name, value)?),
        "directConnection" => options.direct_connection = Some(boolean(name, value)?),
        "journal" => options.write_concern.journal = Some(boolean(name, value)?),
        "maxPoolSize" => {
            options.max_pool_size = Some(number(name, value)?).filter(|&size: &u32| size > 0);
        }
        "readConcernLevel" => options.read_concern_level = Some(read_concern(name, value)?),
        "replicaSet" => options.replica_set = Some(value.into()),
        "serverSelectionTimeoutMS" => {
            options.server_selection_timeout_ms = Some(above_zero(name, value)?);
        }
        "socketTimeoutMS" => options.socket_timeout_ms = Some(number(name, value)?),
        "srvMaxHosts" => parsed.srv.max_hosts = Some(number(name, value)?),
        "srvServiceName" => parsed.srv.service_name = Some(value.into()),
        "tls" => parsed.tls = Some(boolean(name, value)?),
        "tlsAllowInvalidCertificates" => {
            options.tls_allow_invalid_certificates = boolean(name, value)?;
        }
        "tlsAllowInvalidHostnames" => options.tls_allow_invalid_hostnames = boolean(name, value)?,
        "tlsCAFile" => options.tls_ca_file = Some(PathBuf::from(value)),
        "tlsCertificateKeyFile" => options.tls_certificate_key_file = Some(PathBuf::from(value)),
        "retryReads" => options.retry_reads = Some(boolean(name, value)?),
        "retryWrites" => options.retry_writes = Some(boolean(name, value)?),
        // Stored with the secrets.
        "tlsCertificateKeyFilePassword" => {}
        "tlsInsecure" => options.tls_insecure = boolean(name, value)?,
        "w" => return acknowledgement(options, name, value),
        "wTimeoutMS" => options.write_concern.wtimeout_ms = Some(number(name, value)?),
        "zlibCompressionLevel" => match number::<i32>(name, value)? {
            level @ -1..=9 => options.zlib_compression_level = Some(level),
            _ => return Err(invalid(name, value, "a number from -1 to 9")),
        },
        _ => return interpret_partly_supported(options, name, value),
    }
    Ok(None)
}

/// Shortest interval between two checks of a server by a driver.
const LEAST_HEARTBEAT_MS: u64 = 500;

/// Shortest `maxStalenessSeconds` of a driver.
const LEAST_STALENESS_S: i64 = 90;

const UUID_REPRESENTATIONS: [&str; 5] =
    ["standard", "csharpLegacy", "javaLegacy", "pythonLegacy", "unspecified"];

const READ_PREFERENCES: [&str; 5] =
    ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];

/// Interprets options that the wire backend supports only partly or not at all.
fn interpret_partly_supported(
    options: &mut TargetOptions,
    name: &'static str,
    value: &str,
) -> Result<Refusal, UriError> {
    let when = |refused: bool, refusal: Refusal| if refused { refusal } else { None };
    Ok(match name {
        "loadBalanced" => {
            let balanced = boolean(name, value)?;
            options.load_balanced = Some(balanced);
            let reason = "the wire backend does not pin connections behind a load balancer";
            when(balanced, Some((reason, "name the servers themselves, or a tunnel to them")))
        }
        "readPreference" => {
            let mode = one_of(name, value, &READ_PREFERENCES)?;
            options.read_preference = Some(mode.to_owned());
            when(mode != "primary", PRIMARY_ONLY)
        }
        "readPreferenceTags" => {
            check_tags(name, value)?;
            PRIMARY_ONLY
        }
        "maxStalenessSeconds" => match number::<i64>(name, value)? {
            -1 => None,
            LEAST_STALENESS_S.. => PRIMARY_ONLY,
            _ => return Err(invalid(name, value, "-1, or a number of seconds from 90")),
        },
        "minPoolSize" => number::<u32>(name, value).map(|_| None)?,
        "maxConnecting" => above_zero(name, value).map(|_| None)?,
        "maxIdleTimeMS" | "waitQueueTimeoutMS" | "localThresholdMS" => {
            number::<u64>(name, value).map(|_| None)?
        }
        "heartbeatFrequencyMS" => {
            if number::<u64>(name, value)? < LEAST_HEARTBEAT_MS {
                return Err(invalid(name, value, "a number of milliseconds from 500"));
            }
            None
        }
        "serverMonitoringMode" => one_of(name, value, &["auto", "poll", "stream"]).map(|_| None)?,
        "maxAdaptiveRetries" => {
            number::<u32>(name, value)?;
            Some((ONE_RETRY, USE_DRIVER))
        }
        "enableOverloadRetargeting" => when(boolean(name, value)?, Some((ONE_RETRY, USE_DRIVER))),
        "uuidRepresentation" => {
            one_of(name, value, &UUID_REPRESENTATIONS)?;
            None
        }
        _ if neither(name).is_some() => None,
        _ => unreachable!("`{name}` is in the table of names but is not interpreted"),
    })
}

fn acknowledgement(
    options: &mut TargetOptions,
    name: &'static str,
    value: &str,
) -> Result<Refusal, UriError> {
    let is_number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let w = match value {
        "majority" => W::Majority,
        _ if is_number => W::Number(number(name, value)?),
        tag => W::Tag(tag.into()),
    };
    let refusal = (w == W::Number(0))
        .then_some(("the end of an unacknowledged write cannot be measured", "use `w=1`"));
    options.write_concern.w = Some(w);
    Ok(refusal)
}

fn above_zero(name: &'static str, value: &str) -> Result<u64, UriError> {
    let number = number(name, value)?;
    if number == 0 {
        return Err(invalid(name, value, "a number above 0"));
    }
    Ok(number)
}

/// Refuses tags other than `name:value`, separated by commas. An empty value means any member.
fn check_tags(name: &'static str, value: &str) -> Result<(), UriError> {
    let mut tags = value.split(',').filter(|_| !value.is_empty());
    if tags.all(|tag| tag.split(':').count() == 2) {
        return Ok(());
    }
    Err(invalid(name, value, "tags such as `dc:ny,rack:1`"))
}

/// `None` for `DEFAULT`, which some tools write: the server decides.
fn mechanism(value: &str) -> Result<Option<Mechanism>, UriError> {
    if value == "DEFAULT" {
        return Ok(None);
    }
    if OTHER_MECHANISMS.contains(&value) {
        return Err(UriError::UnsupportedMechanism { mechanism: value.into() });
    }
    let mut known = Mechanism::ALL.into_iter();
    let names = Mechanism::ALL.map(Mechanism::name).join("`, `");
    known
        .find(|mechanism| mechanism.name() == value)
        .map(Some)
        .ok_or_else(|| invalid("authMechanism", value, &format!("one of `{names}`")))
}

fn compressors(name: &'static str, value: &str) -> Result<Vec<Compressor>, UriError> {
    let mut compressors = Vec::new();
    for text in value.split(',') {
        let compressor = match text {
            "snappy" => Compressor::Snappy,
            "zlib" => Compressor::Zlib,
            "zstd" => Compressor::Zstd,
            _ => return Err(invalid(name, text, "`snappy`, `zlib` or `zstd`")),
        };
        if !compressors.contains(&compressor) {
            compressors.push(compressor);
        }
    }
    Ok(compressors)
}

fn read_concern(name: &'static str, value: &str) -> Result<String, UriError> {
    let levels = ["local", "available", "majority", "linearizable", "snapshot"];
    one_of(name, value, &levels).map(Into::into)
}

fn one_of(
    name: &'static str,
    value: &str,
    known: &[&'static str],
) -> Result<&'static str, UriError> {
    known
        .iter()
        .find(|candidate| candidate.eq_ignore_ascii_case(value))
        .copied()
        .ok_or_else(|| invalid(name, value, &format!("one of `{}`", known.join("`, `"))))
}

fn boolean(name: &'static str, value: &str) -> Result<bool, UriError> {
    value.parse().map_err(|_| invalid(name, value, "`true` or `false`"))
}

fn number<N: std::str::FromStr>(name: &'static str, value: &str) -> Result<N, UriError> {
    let is_plain = !value.starts_with('+');
    value
        .parse()
        .ok()
        .filter(|_| is_plain)
        .ok_or_else(|| invalid(name, value, "a whole number in range"))
}

fn invalid(name: &'static str, value: &str, expected: &str) -> UriError {
    let value = if SECRET_NAMES.contains(&name) { "***" } else { value };
    UriError::OptionValue { name, value: value.into(), expected: expected.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_option_is_interpreted() {
        for name in option_names() {
            for value in ["1", "true", "x"] {
                // Values may be wrong; a name that is not interpreted would panic.
                let _ = interpret(&[(name, value.to_owned())]);
            }
        }
    }

    #[test]
    fn names_are_known_in_any_case_and_by_their_other_spellings() {
        assert_eq!(canonical("MAXPOOLSIZE"), Some("maxPoolSize"));
        assert_eq!(canonical("ssl"), Some("tls"));
        assert_eq!(canonical("j"), Some("journal"));
        assert_eq!(canonical("maxPool"), None);
    }
}
