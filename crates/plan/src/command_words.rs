//! The words of a command line as they may be kept: without what looks like a secret. When in doubt it hides too much.

use crate::uri::redact;

/// What stands for a secret.
pub(crate) const MASK: &str = "***";

/// Parts of names whose values are secrets.
const SECRET: [&str; 8] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "cookie",
];

/// Programs whose options of one letter take a password.
const CLIENTS: [&str; 6] = ["mongo", "mysql", "maria", "redis", "valkey", "ldap"];

/// A web address without its query, which may hold a token.
pub fn without_query(url: &str) -> String {
    let Some((address, _)) = url.split_once('?') else {
        return url.to_owned();
    };
    format!("{address}?{MASK}")
}

/// A command line without secrets. A word in which none is found stays as it is, to the last blank.
pub fn without_secrets(words: &[String]) -> Vec<String> {
    let mut state = State::default();
    let masked = words.iter().map(|word| state.masked(word));
    masked.collect()
}

/// Whether some words have lost a secret to [`without_secrets`].
pub fn lacks_secrets(words: &[String]) -> bool {
    let mut pieces = words.iter().flat_map(|word| word.split_whitespace());
    let is_hidden = |piece: &str| {
        let piece = piece.trim_matches(['"', '\'']);
        let before = piece.strip_suffix(MASK);
        let is_value = before.is_some_and(|before| {
            before.is_empty() || before == "-p" || before.ends_with(['=', ':'])
        });
        is_value || piece.contains("://***@")
    };
    pieces.any(is_hidden)
}

/// What the words so far say of the next one.
#[derive(Default)]
struct State {
    /// The next word is a secret, unless it is an option.
    is_value: bool,
    /// The next word is the name and the password of a user.
    is_user: bool,
    /// A program whose options of one letter take a password was named.
    is_client: bool,
}

impl State {
    fn masked(&mut self, word: &str) -> String {
        // A script for a shell is a command line again, and so is the value of a header.
        if word.contains(char::is_whitespace) {
            let mut inner = State {
                is_client: self.is_client,
                ..State::default()
            };
            (self.is_value, self.is_user) = (false, false);
            let redacted = redact(word);
            let pieces = redacted.split_inclusive(char::is_whitespace);
            return pieces
                .map(|piece| {
                    let text = piece.trim_end();
                    match text {
                        "" => piece.to_owned(),
                        _ => inner.masked(text) + &piece[text.len()..],
                    }
                })
                .collect();
        }
        let (is_value, is_user) = (self.is_value, self.is_user);
        let program = word.rsplit('/').next().unwrap_or(word);
        self.is_client |= CLIENTS.iter().any(|client| program.starts_with(client));
        let is_option = word.starts_with('-') && !word.contains('=');
        let is_short = self.is_client && matches!(word, "-p" | "-a" | "-w");
        let is_header = ["authorization:", "bearer", "basic"]
            .contains(&word.trim_matches(['"', '\'']).to_lowercase().as_str());
        self.is_value = is_short || is_header || (is_option && is_secret_name(word));
        self.is_user = matches!(word, "-u" | "--user" | "--proxy-user");
        if is_value && !word.starts_with('-') && !is_header {
            return MASK.to_owned();
        }
        if is_user && let Some((user, _)) = word.split_once(':') {
            return format!("{user}:{MASK}");
        }
        masked(word, self.is_client)
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

fn masked(word: &str, is_of_client: bool) -> String {
    let word = redact(word);
    if let Some((name, _)) = word.split_once('=')
        && is_secret_name(name)
    {
        return format!("{name}={MASK}");
    }
    // `mysql -pSECRET`
    if is_of_client && word.starts_with("-p") && word.len() > 2 {
        return format!("-p{MASK}");
    }
    match (word.find("://"), word.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 < at => {
            format!("{}{MASK}{}", &word[..scheme + 3], &word[at..])
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &[&str]) -> String {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        without_secrets(&words).join(" ")
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden() {
        for line in [
            &["mongosh", "-u", "app", "-p", "hunter2"][..],
            &["mongosh", "--password", "hunter2", "x"],
            &["mongosh", "--password=hunter2"],
            &["mysql", "-phunter2"],
            &["redis-cli", "-a", "hunter2"],
            &["psql", "postgres://u:hunter2@db/x"],
            &["mongosh", "mongodb://u:hunter2@db/x"],
            &["env", "PGPASSWORD=hunter2", "psql"],
            &["curl", "--auth-token", "hunter2"],
            &["sh", "-c", "mysql -phunter2 shop; PASSWORD=hunter2 true"],
            &["curl", "-u", "me:hunter2", "http://h"],
            &["curl", "-H", "Authorization: Bearer hunter2", "http://h"],
        ] {
            let text = kept(line);
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.starts_with(line[0]) && text.contains(MASK), "{text}");
        }
    }

    #[test]
    fn everything_else_stays() {
        for line in [
            &[
                "fio",
                "--name=read",
                "--size=1G",
                "--filename",
                "/data/x",
                "-v",
            ][..],
            &["perf", "stat", "-a", "-p", "17", "sleep", "10"],
            &["pidstat", "-u", "-p", "ALL", "1"],
            &[
                "sh",
                "-c",
                "\n# watch it\nperf record -p $DYNO_SERVER_PIDS   -o x\n\techo 'a  b'\n",
            ],
            &["ls", "/x/***"],
        ] {
            assert_eq!(kept(line), line.join(" "));
        }
    }

    #[test]
    fn what_was_hidden_is_noticed_and_stays_hidden() {
        for line in [
            &["mongosh", "-p", "x"][..],
            &["mysql", "-px"],
            &["sh", "-c", "mongosh mongodb://u:p@h/  --quiet"],
            &["env", "TOKEN=x", "true"],
            &["curl", "-u", "me:x", "http://h"],
        ] {
            let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            let once = without_secrets(&words);
            assert!(lacks_secrets(&once) && !lacks_secrets(&words), "{once:?}");
            assert_eq!(without_secrets(&once), once);
        }
        assert!(!lacks_secrets(&["ls".to_owned(), "/x/***".to_owned()]));
    }
}
