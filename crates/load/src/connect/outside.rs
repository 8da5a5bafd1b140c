//! Credentials that are not in the connection string: AWS keys of the environment, and the file with a token of OIDC.

use super::error::ConnectError;
use dyno_plan::uri::{Credentials, Mechanism};
use dyno_wire::aws;
use std::path::PathBuf;

/// Variables that name the file of the token, as drivers read them for `ENVIRONMENT:k8s`.
const TOKEN_FILES: [&str; 2] = ["AZURE_FEDERATED_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];
/// The token that Kubernetes gives a pod.
const TOKEN_OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Fails if the credentials need something that is missing here.
pub(super) fn check(credentials: &Credentials) -> Result<(), ConnectError> {
    match credentials.mechanism {
        Some(Mechanism::Aws) => aws_key(credentials).map(drop),
        Some(Mechanism::Oidc) => token().map(drop),
        _ => Ok(()),
    }
}

/// The access key of the connection string, else of the environment.
pub(super) fn aws_key(credentials: &Credentials) -> Result<aws::Key, ConnectError> {
    find_aws_key(credentials, |name| std::env::var(name).ok())
}

fn find_aws_key(
    credentials: &Credentials,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<aws::Key, ConnectError> {
    if !credentials.username.is_empty() {
        return Ok(aws::Key {
            id: credentials.username.clone(),
            secret: credentials.password().to_owned(),
            session_token: credentials.session_token().map(str::to_owned),
        });
    }
    let variable = |name| variable(name).filter(|value: &String| !value.is_empty());
    match (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => {
            Ok(aws::Key { id, secret, session_token: variable("AWS_SESSION_TOKEN") })
        }
        _ => Err(ConnectError::NoAwsKey),
    }
}

/// The token of OIDC. It is read for each connection, because the file is replaced before its token expires.
pub(super) fn token() -> Result<String, ConnectError> {
    let named = TOKEN_FILES.iter().find_map(std::env::var_os);
    let path = named.map_or_else(|| PathBuf::from(TOKEN_OF_POD), PathBuf::from);
    match std::fs::read_to_string(&path) {
        Ok(token) => Ok(token.trim().to_owned()),
        Err(source) => Err(ConnectError::TokenFile { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::uri;

    #[test]
    fn key_of_the_connection_string_precedes_the_environment() {
        let key = |text: &str, variables: &[&str]| {
            let (_, credentials) = uri::parse(text).unwrap();
            let variable = |name: &str| {
                variables.contains(&name).then(|| format!("{name} of the environment"))
            };
            find_aws_key(&credentials.unwrap(), variable)
        };
        let all = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
        let given = key("mongodb://id:secret@h/?authMechanism=MONGODB-AWS", &all).unwrap();
        assert_eq!((given.id.as_str(), given.secret.as_str()), ("id", "secret"));
        assert_eq!(given.session_token, None);
        let own = "mongodb://h/?authMechanism=MONGODB-AWS";
        let found = key(own, &all).unwrap();
        assert_eq!(found.id, "AWS_ACCESS_KEY_ID of the environment");
        assert!(found.session_token.is_some());
        assert_eq!(key(own, &all[..2]).unwrap().session_token, None);
        assert!(matches!(key(own, &all[..1]), Err(ConnectError::NoAwsKey)));
    }
}
