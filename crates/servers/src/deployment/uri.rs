//! Connection strings of a deployment: pure functions.

use dyno_plan::uri::{Credentials, encode};

use crate::tls::TlsFiles;

/// How clients connect to a group of servers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConnectionMode<'a> {
    /// Directly to one server, whatever its role.
    Direct,
    /// To the members of this replica set.
    ReplicaSet(&'a str),
    /// To any of several routers.
    Routers,
}

/// A connection string without credentials, with hosts as `HOST:PORT`.
pub(crate) fn uri(
    hosts: &[String],
    mode: ConnectionMode<'_>,
    tls: Option<&TlsFiles>,
    with_certificate: bool,
) -> String {
    let mut options = match mode {
        ConnectionMode::Direct => vec!["directConnection=true".to_owned()],
        ConnectionMode::ReplicaSet(set) => vec![format!("replicaSet={set}")],
        ConnectionMode::Routers => Vec::new(),
    };
    if let Some(tls) = tls {
        options.push("tls=true".to_owned());
        options.push(format!("tlsCAFile={}", encode(&tls.ca.to_string_lossy())));
        if with_certificate {
            let path = encode(&tls.client.to_string_lossy());
            options.push(format!("tlsCertificateKeyFile={path}"));
        }
    }
    let query = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
    format!("mongodb://{}/{query}", hosts.join(","))
}

/// Adds user, password, `authSource` and mechanism to a connection string. The result is a secret.
pub(super) fn with_credentials(uri: &str, credentials: &Credentials) -> String {
    let rest = uri.strip_prefix("mongodb://").unwrap_or(uri);
    let join = if rest.contains('?') { '&' } else { '?' };
    format!(
        "mongodb://{}:{}@{rest}{join}authSource={}&authMechanism=SCRAM-SHA-256",
        encode(&credentials.username),
        encode(credentials.password()),
        encode(credentials.source.as_deref().unwrap_or("admin")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::uri::parse;

    fn host(port: u16) -> String {
        format!("127.0.0.1:{port}")
    }

    #[test]
    fn connection_strings_name_their_hosts() {
        let addresses = [1, 2].map(host);
        assert_eq!(
            uri(&addresses[..1], ConnectionMode::Direct, None, false),
            "mongodb://127.0.0.1:1/?directConnection=true"
        );
        assert_eq!(
            uri(&addresses, ConnectionMode::ReplicaSet("dyno"), None, false),
            "mongodb://127.0.0.1:1,127.0.0.1:2/?replicaSet=dyno"
        );
        assert_eq!(
            uri(&addresses, ConnectionMode::Routers, None, false),
            "mongodb://127.0.0.1:1,127.0.0.1:2/"
        );
    }

    #[test]
    fn paths_and_passwords_survive_the_parser_of_the_plan() {
        let tls = TlsFiles {
            ca: "/my run/ca&b.pem".into(),
            server: "/s".into(),
            server_certificate: "/sc".into(),
            server_key: "/sk".into(),
            client: "/my run/client.pem".into(),
        };
        let plain = uri(&[host(9)], ConnectionMode::Routers, Some(&tls), true);
        let credentials = Credentials::new("u".into(), "p@:/?".into(), Some("admin".into()));
        let (target, found) = parse(&with_credentials(&plain, &credentials)).unwrap();
        let found = found.unwrap();
        assert_eq!((found.username.as_str(), found.password()), ("u", "p@:/?"));
        assert_eq!(found.source.as_deref(), Some("admin"));
        assert!(target.options.tls);
        let shown = format!("{:?}", target.options);
        assert!(
            shown.contains("/my run/ca&b.pem") && shown.contains("/my run/client.pem"),
            "{shown}"
        );
    }
}
