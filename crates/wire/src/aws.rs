//! Client side of `MONGODB-AWS`: the server forwards a request for `GetCallerIdentity`, signed by the user's key, to AWS.
//!
//! The signature is version 4 of AWS. The caller transfers the payloads, and supplies the nonce and the time.

use crate::bson::{BsonError, Document, Value, write_document};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use thiserror::Error;

/// Bytes of the client's nonce, with which the server's nonce begins.
pub const NONCE_BYTES: usize = 32;
const BODY: &str = "Action=GetCallerIdentity&Version=2011-06-15";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// No channel binding.
const GS2_FLAG: &str = "n";

/// An access key. `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    pub id: String,
    pub secret: String,
    /// Belongs to temporary keys.
    pub session_token: Option<String>,
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

/// The server's first message is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AwsError {
    #[error("server's authentication message is malformed")]
    Bson(#[from] BsonError),
    #[error("server's nonce does not extend the client's")]
    Nonce,
    /// The request would go to another host than one of AWS.
    #[error("server names an invalid host for the request to AWS")]
    Host,
}

/// Payload of the first message.
pub fn first_message(nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    let mut payload = Vec::new();
    write_document(&mut payload, |writer| {
        writer.binary("r", nonce).i32("p", i32::from(GS2_FLAG.as_bytes()[0]));
    });
    payload
}

/// Payload of the second message, the answer to the server's first one. `time` is in UTC, such as `20261129T120000Z`.
///
/// # Errors
/// [`AwsError`] for an unacceptable message of the server.
pub fn second_message(
    key: &Key,
    nonce: &[u8; NONCE_BYTES],
    server_first: &[u8],
    time: &str,
) -> Result<Vec<u8>, AwsError> {
    let (mut server_nonce, mut host) = (&[][..], "");
    for element in Document::new(server_first)?.elements() {
        let element = element?;
        match (element.name, element.value()?) {
            (b"s", Value::Binary { bytes, .. }) => server_nonce = bytes,
            (b"h", Value::String(text)) => host = text,
            _ => {}
        }
    }
    if server_nonce.len() != 2 * NONCE_BYTES || !server_nonce.starts_with(nonce) {
        return Err(AwsError::Nonce);
    }
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if host.len() > 255 || !host.split('.').all(is_label) {
        return Err(AwsError::Host);
    }
    let authorization = authorization(key, server_nonce, host, time);
    let mut payload = Vec::new();
    write_document(&mut payload, |writer| {
        writer.string("a", &authorization).string("d", time);
        if let Some(token) = &key.session_token {
            writer.string("t", token);
        }
    });
    Ok(payload)
}

/// The header `Authorization` of the request.
fn authorization(key: &Key, server_nonce: &[u8], host: &str, time: &str) -> String {
    let server_nonce = BASE64.encode(server_nonce);
    let length = BODY.len().to_string();
    // In the order of their names.
    let mut headers = vec![
        ("content-length", length.as_str()),
        ("content-type", "application/x-www-form-urlencoded"),
        ("host", host),
        ("x-amz-date", time),
        ("x-mongodb-gs2-cb-flag", GS2_FLAG),
        ("x-mongodb-server-nonce", &server_nonce),
    ];
    if let Some(token) = &key.session_token {
        headers.insert(4, ("x-amz-security-token", token));
    }
    let signed: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let signed = signed.join(";");
    let mut request = "POST\n/\n\n".to_owned();
    for (name, value) in headers {
        request.push_str(&format!("{name}:{value}\n"));
    }
    request.push_str(&format!("\n{signed}\n{}", hex(&Sha256::digest(BODY))));

    let (day, _) = time.split_once('T').unwrap_or((time, ""));
    let region = region(host);
    let scope = format!("{day}/{region}/sts/aws4_request");
    let to_sign = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex(&Sha256::digest(request)));
    let first = format!("AWS4{}", key.secret).into_bytes();
    let signing_key =
        [day, region, "sts", "aws4_request"].into_iter().fold(first, |key, part| hmac(&key, part));
    let signature = hex(&hmac(&signing_key, &to_sign));
    format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
        key.id
    )
}

/// The region in the name of the host.
fn region(host: &str) -> &str {
    match host.split('.').nth(1) {
        Some(region) if host != "sts.amazonaws.com" => region,
        _ => "us-east-1",
    }
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac =
        <Hmac<Sha256> as Mac>::new_from_slice(key).expect("an HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::bson::{Binary, Document as Owned, doc, spec::BinarySubtype};

    const TIME: &str = "20261129T120000Z";

    fn nonce() -> [u8; NONCE_BYTES] {
        std::array::from_fn(|index| index as u8)
    }

    fn key(session_token: Option<&str>) -> Key {
        Key {
            id: "AKIDEXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: session_token.map(str::to_owned),
        }
    }

    fn server_first(bytes: Vec<u8>, host: &str) -> Vec<u8> {
        let nonce = Binary { subtype: BinarySubtype::Generic, bytes };
        doc! { "s": nonce, "h": host }.to_vec().unwrap()
    }

    /// The signatures come from `SigV4Auth` of botocore.
    #[test]
    fn requests_are_signed_as_aws_does() {
        for (token, host, region, signature) in [
            (
                None,
                "sts.amazonaws.com",
                "us-east-1",
                "1b388b5adab1d94ac91a1d434663d6d0ca0d29b9bedc35cf3b4ad006f077a406",
            ),
            (
                Some("a token+/="),
                "sts.eu-central-1.amazonaws.com",
                "eu-central-1",
                "111e7dbce2e0b2f499732c7302b81b41ee732bfdd2e6763138b951170ed9717f",
            ),
        ] {
            let first = server_first((0..64).collect(), host);
            let second = second_message(&key(token), &nonce(), &first, TIME).unwrap();
            let second = Owned::from_reader(second.as_slice()).unwrap();
            let authorization = second.get_str("a").unwrap();
            assert!(authorization.ends_with(&format!("Signature={signature}")), "{authorization}");
            let scope = format!("AKIDEXAMPLE/20261129/{region}/sts/aws4_request,");
            assert!(authorization.contains(&scope), "{authorization}");
            assert_eq!(second.get_str("d").unwrap(), TIME);
            assert_eq!(second.get_str("t").ok(), token);
        }
    }

    #[test]
    fn first_message_has_the_nonce_and_no_channel_binding() {
        let message = Owned::from_reader(first_message(&nonce()).as_slice()).unwrap();
        assert_eq!(message.get_binary_generic("r").unwrap(), &nonce().to_vec());
        assert_eq!(message.get_i32("p").unwrap(), 110);
    }

    #[test]
    fn foreign_nonces_and_hosts_are_refused() {
        let refused = |bytes: Vec<u8>, host: &str| {
            second_message(&key(None), &nonce(), &server_first(bytes, host), TIME).unwrap_err()
        };
        let good: Vec<u8> = (0..64).collect();
        let host = "sts.amazonaws.com";
        assert_eq!(refused(good[..32].to_vec(), host), AwsError::Nonce);
        assert_eq!(refused(vec![7; 64], host), AwsError::Nonce);
        for host in ["", "sts..com", "sts.amazonaws.com/evil", &"a".repeat(256)] {
            assert_eq!(refused(good.clone(), host), AwsError::Host, "{host}");
        }
        assert!(!format!("{:?}", key(Some("t"))).contains("wJal"));
    }

    #[test]
    fn region_is_in_the_name_of_the_host() {
        for (host, expected) in [
            ("sts.amazonaws.com", "us-east-1"),
            ("sts", "us-east-1"),
            ("sts.us-west-2.amazonaws.com", "us-west-2"),
            ("first.second", "second"),
        ] {
            assert_eq!(region(host), expected);
        }
    }
}
