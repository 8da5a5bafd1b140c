//! Percent-encoding of RFC 3986 for the parts of a connection string.

use std::fmt::Write;

/// Decodes `%XX`; `None` if a `%` is not followed by two hexadecimal digits or the bytes are not
/// UTF-8. A `+` stays a `+`.
pub(super) fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] == b'%' {
            let high = char::from(*bytes.get(index + 1)?).to_digit(16)?;
            let low = char::from(*bytes.get(index + 2)?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
            index += 3;
        } else {
            decoded.push(bytes[index]);
            index += 1;
        }
    }
    String::from_utf8(decoded).ok()
}

/// Encodes all characters except the unreserved ones of RFC 3986.
pub fn encode(text: &str) -> String {
    encode_except(text, "")
}

/// Encodes all characters except the unreserved ones of RFC 3986 and those in `kept`.
pub(super) fn encode_except(text: &str, kept: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric()
            || "-._~".contains(character)
            || kept.contains(character)
        {
            encoded.push(character);
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_survives_encoding_and_decoding() {
        for text in ["", "plain", "a b/c?d#e%f+g", "größe ✓", "\u{0}\n"] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn broken_encoding_is_refused() {
        for text in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
