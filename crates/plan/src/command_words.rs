//! Prepares the words of a command line for storage by hiding possible secrets. When in doubt it
//! hides too much.

pub(crate) use crate::redact::MASK;
use crate::redact::{Part, is_client, is_secret_option, redact_part};

/// A web address without its query, which may hold a token.
pub fn without_query(url: &str) -> String {
    let Some((address, _)) = url.split_once('?') else {
        return url.to_owned();
    };
    format!("{address}?{MASK}")
}

/// A command line without secrets. A word without a secret stays exactly the same.
pub fn without_secrets(words: &[String]) -> Vec<String> {
    let mut state = State::default();
    let masked = words.iter().map(|word| state.masked(word));
    masked.collect()
}

/// Whether [`without_secrets`] has removed a secret from these words.
pub fn lacks_secrets(words: &[String]) -> bool {
    words.iter().any(|word| {
        word.match_indices(MASK).any(|(place, _)| {
            let (before, after) = (&word[..place], &word[place + MASK.len()..]);
            let is_begin = |c: char| c.is_whitespace() || "=:\"'(?>".contains(c);
            let is_end = |c: char| c.is_whitespace() || "&\"')}];,|\\".contains(c);
            let is_key = before.ends_with("KEY-----");
            let is_value =
                before.is_empty() || before.ends_with(is_begin) || before.ends_with("-p");
            let is_user = before.ends_with("://") && after.starts_with('@');
            is_user || is_key || is_value && (after.is_empty() || after.starts_with(is_end))
        })
    })
}

/// Expectations about the next word, from the previous ones.
#[derive(Default)]
struct State {
    /// The next word is a secret, unless it is an option.
    is_value: bool,
    /// The next word contains name and password of a user.
    is_user: bool,
    /// A program was named whose one-letter options take a password.
    is_client: bool,
}

impl State {
    fn masked(&mut self, word: &str) -> String {
        let (is_value, is_user) = (self.is_value, self.is_user);
        self.is_client |= is_client(word);
        let is_short = self.is_client && matches!(word, "-p" | "-a" | "-w");
        let is_header =
            ["authorization:", "bearer", "basic"].contains(&word.to_lowercase().as_str());
        self.is_value = is_short || is_header || is_secret_option(word);
        self.is_user = matches!(word, "-u" | "--user" | "--proxy-user");
        if is_value && !word.starts_with('-') && !is_header {
            return MASK.to_owned();
        }
        match word.split_once(':') {
            Some((user, _)) if is_user => format!("{user}:{MASK}"),
            _ if self.is_client => redact_part(word, Part::ClientCommand),
            _ => redact_part(word, Part::Command),
        }
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
    fn words_that_look_like_secrets_are_hidden() {
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
            &["fio", "--name=read", "--size=1G", "--filename", "/data/x", "-v"][..],
            &["perf", "stat", "-a", "-p", "17", "sleep", "10"],
            &["pidstat", "-u", "-p", "ALL", "1"],
            &["sh", "-c", "\n# watch it\nperf record -p $DYNO_SERVER_PIDS   -o x\n\techo 'a  b'\n"],
            &["ls", "/x/***"],
        ] {
            assert_eq!(kept(line), line.join(" "));
        }
    }

    #[test]
    fn hidden_secrets_are_detected_and_stay_hidden() {
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
