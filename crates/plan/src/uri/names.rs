//! The names of the options of a connection string.

/// Names in MongoDB's list of URI options, with spaces between them.
const NAMES: &str = "\
    appName authMechanism authMechanismProperties authSource compressors connectTimeoutMS \
    directConnection enableOverloadRetargeting fsync gssapiServiceName heartbeatFrequencyMS \
    journal loadBalanced localThresholdMS maxAdaptiveRetries maxConnecting maxIdleTimeMS \
    maxLifeTimeMS maxPoolSize maxStalenessSeconds minPoolSize proxyHost proxyPassword proxyPort \
    proxyUsername readConcernLevel readPreference readPreferenceTags replicaSet retryReads \
    retryWrites safe serverMonitoringMode serverSelectionTimeoutMS serverSelectionTryOnce \
    slaveOk socketTimeoutMS srvMaxHosts srvServiceName timeoutMS tls tlsAllowInvalidCertificates \
    tlsAllowInvalidHostnames tlsCAFile tlsCertificateKeyFile tlsCertificateKeyFilePassword \
    tlsDisableCertificateRevocationCheck tlsDisableOCSPEndpointCheck tlsInsecure \
    uuidRepresentation w waitQueueMultiple waitQueueTimeoutMS wTimeoutMS zlibCompressionLevel";

/// Other spellings that are in use, in lower case, with the names that they stand for.
const ALIASES: [(&str, &str); 4] = [
    ("j", "journal"),
    ("ssl", "tls"),
    ("sslinvalidhostnameallowed", "tlsAllowInvalidHostnames"),
    ("wtimeout", "wTimeoutMS"),
];

/// Canonical names of all options of a connection string.
pub fn option_names() -> impl Iterator<Item = &'static str> {
    NAMES.split(' ')
}

/// Whether a connection string may contain an option with this name.
pub(crate) fn is_option(name: &str) -> bool {
    canonical(name).is_some()
}

pub(super) fn canonical(name: &str) -> Option<&'static str> {
    let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
    let name = alias.map_or(name, |(_, name)| name);
    option_names().find(|known| known.eq_ignore_ascii_case(name))
}
