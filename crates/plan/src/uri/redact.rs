//! Removes secrets from any text that might hold a connection string: messages of other libraries,
//! command lines, server logs.

/// What stands in place of a secret.
const MASK: &str = "***";

/// The text with user and password of every connection string, and the value of everything whose
/// name ends in `password` or is `authMechanismProperties`, replaced by `***`.
///
/// When in doubt it hides too much: a connection string ends at white space, and everything up to
/// its last `@` counts as credentials.
pub fn redact(text: &str) -> String {
    mask_values(&mask_user_information(text))
}

/// What documentation and hints write where user and password go.
const PLACEHOLDER: &str = "USER:PASSWORD";

fn mask_user_information(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme_end) = find_scheme_end(rest) {
        let (before, after) = rest.split_at(scheme_end);
        result.push_str(before);
        let word_end = after.find(char::is_whitespace).unwrap_or(after.len());
        let line_end = after.find('\n').unwrap_or(after.len());
        let secret_end = match after[..word_end].rfind('@') {
            Some(at) => Some(at),
            None if has_password_without_host(&after[..word_end]) => after[..line_end].rfind('@'),
            None => None,
        };
        match secret_end {
            Some(at) => {
                let is_placeholder = after[..at] == *PLACEHOLDER;
                result.push_str(if is_placeholder { PLACEHOLDER } else { MASK });
                rest = &after[at..];
            }
            None => rest = after,
        }
    }
    result.push_str(rest);
    result
}

/// End of the next `mongodb://` or `mongodb+srv://`, upper case included.
fn find_scheme_end(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    ["mongodb://", "mongodb+srv://"]
        .iter()
        .filter_map(|scheme| lower.find(scheme).map(|start| start + scheme.len()))
        .min()
}

/// Whether a word that should start with a host has something that is no port behind its colon: the
/// beginning of a password with white space in it.
fn has_password_without_host(word: &str) -> bool {
    let authority_end = word.find(['/', '?', ',']).unwrap_or(word.len());
    let authority = &word[..authority_end];
    if authority.starts_with('[') && authority.contains(']') {
        return false;
    }
    authority
        .split_once(':')
        .is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn mask_values(text: &str) -> String {
    const NAMES: [&str; 2] = ["password=", "authmechanismproperties="];
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let lower = rest.to_ascii_lowercase();
        let Some(value) = NAMES
            .iter()
            .filter_map(|name| lower.find(name).map(|start| start + name.len()))
            .min()
        else {
            result.push_str(rest);
            return result;
        };
        let (before, after) = rest.split_at(value);
        result.push_str(before);
        let end = after
            .find(|c: char| c.is_whitespace() || c == '&')
            .unwrap_or(after.len());
        if end > 0 {
            result.push_str(MASK);
        }
        rest = &after[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_disappear_and_the_rest_stays() {
        assert_eq!(
            redact("cannot reach mongodb://app:s3cret@db.example:27017/ycsb?w=1 now"),
            "cannot reach mongodb://***@db.example:27017/ycsb?w=1 now"
        );
        assert_eq!(
            redact("mongodb+srv://app:s3cret@cluster.example"),
            "mongodb+srv://***@cluster.example"
        );
    }

    #[test]
    fn text_without_credentials_is_unchanged() {
        for text in [
            "",
            "nothing here",
            "mongodb://localhost:27017/ycsb, mongodb://[::1]:27018",
            "mail to me@example.org",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn placeholders_of_hints_stay() {
        let hint = "name a user: `mongodb://USER:PASSWORD@HOST/?authSource=admin`";
        assert_eq!(redact(hint), hint);
        assert_eq!(
            redact("mongodb://USER:PASSWORD1@HOST"),
            "mongodb://***@HOST"
        );
    }

    #[test]
    fn every_connection_string_of_a_text_is_redacted() {
        let text = redact("-p mongodb.url=mongodb://u:secret1@a -P x mongodb://u:secret2@b");
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("@a -P x"), "{text}");
    }

    #[test]
    fn passwords_with_unescaped_characters_are_hidden_too() {
        for password in [
            "a/b", "a?b", "a@b", "a#b", "a'b", "a\"b", "a b", "ä:b", "a,b",
        ] {
            let text = redact(&format!("bad uri 'mongodb://user:{password}@host/db'"));
            assert_eq!(text, "bad uri 'mongodb://***@host/db'", "{password}");
        }
    }

    #[test]
    fn secret_options_and_properties_are_hidden() {
        assert_eq!(
            redact("mongodb://h/?tlsCertificateKeyFilePassword=pw&w=1 -p mongodb.password=x y"),
            "mongodb://h/?tlsCertificateKeyFilePassword=***&w=1 -p mongodb.password=*** y"
        );
    }
}
