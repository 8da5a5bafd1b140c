//! Posts annotations to Grafana.

use crate::http::{self, AccessError, Address, Credentials, in_words};
use ureq::Agent;

/// Where annotations are posted, below the address of Grafana.
const PATH: &str = "/api/annotations";

/// A Grafana server that receives annotations.
pub struct Grafana {
    client: Agent,
    address: Address,
    /// A bearer token; credentials of the address take precedence.
    token: Option<String>,
}

impl Grafana {
    /// Uses the Grafana whose pages begin at this address. `token` is sent if the address has no
    /// credentials of its own.
    ///
    /// # Errors
    /// Credentials or certificates cannot be read.
    pub fn new(address: Address, token: Option<String>) -> Result<Grafana, AccessError> {
        // They are read again for each annotation; reading them now reports errors early.
        address.credentials.as_ref().map(Credentials::header).transpose()?;
        Ok(Grafana { client: http::client(&address)?, address, token })
    }

    /// Posts an annotation, which is JSON for its HTTP API, within 2 s.
    ///
    /// # Errors
    /// Why Grafana did not accept it, without the token.
    pub fn annotate(&self, annotation: &str) -> Result<(), String> {
        let url = format!("{}{PATH}", self.address.url.trim_end_matches('/'));
        let failed = |what: String| format!("`{url}`: {what}");
        let credentials = self.address.credentials.as_ref();
        let credentials = credentials.map(Credentials::header).transpose();
        let header = credentials
            .map_err(|error| failed(error.to_string()))?
            .or_else(|| Some(format!("Bearer {}", self.token.as_ref()?)));
        // A redirection would turn the POST into a GET, which may succeed anywhere.
        let request = self.client.post(&url).config().max_redirects(0).build();
        let mut request = request.header("Content-Type", "application/json");
        if let Some(header) = &header {
            request = request.header("Authorization", header);
        }
        let response = request.send(annotation).map_err(|error| failed(in_words(&error)))?;
        let status = response.status();
        let kind = response.body().mime_type();
        match status.as_u16() {
            200 if kind == Some("application/json") => Ok(()),
            200 => Err(failed("it answered, but not as Grafana does".into())),
            401 | 403 if header.is_some() => Err(failed(format!(
                "it answered with status {status}: the token is not accepted, or may not write annotations"
            ))),
            401 | 403 => Err(failed(format!(
                "it answered with status {status}: it requires a token (the variable `DYNO_GRAFANA_TOKEN`, or `observe.grafana.token_file` in the plan)"
            ))),
            _ => Err(failed(format!("it answered with status {status}"))),
        }
    }
}
