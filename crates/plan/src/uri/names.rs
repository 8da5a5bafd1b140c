//! The names of the options of a connection string.

/// Names in MongoDB's list of URI options, with other spellings that are in use (lower case).
const NAMES: &[(&str, &[&str])] = &[
    ("appName", &[]),
    ("authMechanism", &[]),
    ("authMechanismProperties", &[]),
    ("authSource", &[]),
    ("compressors", &[]),
    ("connectTimeoutMS", &[]),
    ("directConnection", &[]),
    ("enableOverloadRetargeting", &[]),
    ("fsync", &[]),
    ("gssapiServiceName", &[]),
    ("heartbeatFrequencyMS", &[]),
    ("journal", &["j"]),
    ("loadBalanced", &[]),
    ("localThresholdMS", &[]),
    ("maxAdaptiveRetries", &[]),
    ("maxConnecting", &[]),
    ("maxIdleTimeMS", &[]),
    ("maxLifeTimeMS", &[]),
    ("maxPoolSize", &[]),
    ("maxStalenessSeconds", &[]),
    ("minPoolSize", &[]),
    ("proxyHost", &[]),
    ("proxyPassword", &[]),
    ("proxyPort", &[]),
    ("proxyUsername", &[]),
    ("readConcernLevel", &[]),
    ("readPreference", &[]),
    ("readPreferenceTags", &[]),
    ("replicaSet", &[]),
    ("retryReads", &[]),
    ("retryWrites", &[]),
    ("safe", &[]),
    ("serverMonitoringMode", &[]),
    ("serverSelectionTimeoutMS", &[]),
    ("serverSelectionTryOnce", &[]),
    ("slaveOk", &[]),
    ("socketTimeoutMS", &[]),
    ("srvMaxHosts", &[]),
    ("srvServiceName", &[]),
    ("timeoutMS", &[]),
    ("tls", &["ssl"]),
    ("tlsAllowInvalidCertificates", &[]),
    ("tlsAllowInvalidHostnames", &["sslinvalidhostnameallowed"]),
    ("tlsCAFile", &[]),
    ("tlsCertificateKeyFile", &[]),
    ("tlsCertificateKeyFilePassword", &[]),
    ("tlsDisableCertificateRevocationCheck", &[]),
    ("tlsDisableOCSPEndpointCheck", &[]),
    ("tlsInsecure", &[]),
    ("uuidRepresentation", &[]),
    ("w", &[]),
    ("waitQueueMultiple", &[]),
    ("waitQueueTimeoutMS", &[]),
    ("wTimeoutMS", &["wtimeout"]),
    ("zlibCompressionLevel", &[]),
];

/// Canonical names of all options of a connection string.
pub fn option_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// Whether a connection string may contain an option with this name.
pub(crate) fn is_option(name: &str) -> bool {
    canonical(name).is_some()
}

pub(super) fn canonical(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    NAMES
        .iter()
        .find(|(canonical, aliases)| {
            canonical.eq_ignore_ascii_case(name) || aliases.contains(&lower.as_str())
        })
        .map(|(canonical, _)| *canonical)
}
