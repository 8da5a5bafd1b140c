//! Fetches the text of an exporter over HTTP.

use crate::health::Health;
use crate::http::{Address, SIZE_LIMIT, in_words};
use ureq::http::Uri;
use ureq::{Agent, ResponseExt};

/// The text at an address.
///
/// # Errors
/// Unreadable credentials, no connection, no answer in time, or an answer that is too long, is not
/// text, or has a status other than 200.
pub(super) fn text(client: &Agent, address: &Address) -> Result<String, Health> {
    let url = &address.url;
    let failed = |what: String| Health::Failed { reason: format!("`{}`: {what}", address.shown()) };
    let mut request = client.get(url).header("Accept", "text/plain;version=0.0.4");
    if let Some(credentials) = &address.credentials {
        let header = credentials.header().map_err(|error| failed(error.to_string()))?;
        request = request.header("Authorization", header);
    }
    let mut response = request.call().map_err(|error| failed(in_words(&error)))?;
    let status = response.status();
    if status.as_u16() != 200 {
        let mut what = format!("it answered with status {status}");
        if matches!(status.as_u16(), 401 | 403) {
            let asked = url.parse();
            let has_moved = asked.is_ok_and(|asked: Uri| asked != *response.get_uri());
            what.push_str(match address.credentials {
                Some(_) if has_moved => ": the plan's URL redirects to another one, which gets no \
                    credentials; set the final URL in the plan",
                Some(_) => ": it does not accept these credentials",
                None => ": it requires credentials (`token_file`, or `user` and `password_file`, in the plan)",
            });
        }
        return Err(failed(what));
    }
    let is_html = response.body().mime_type().is_some_and(|kind| kind == "text/html");
    let body = response.body_mut().with_config().limit(SIZE_LIMIT);
    let text = body.read_to_string().map_err(|error| failed(in_words(&error)))?;
    if is_html || text.trim_start().starts_with('<') {
        let what = "it answered with a page instead of metrics; is `/metrics` missing at the end of the URL?";
        return Err(failed(what.to_owned()));
    }
    Ok(text)
}
