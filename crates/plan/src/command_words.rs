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

/// Options of one letter whose value, the next word, is a password for some program: `mongosh -p`, `redis-cli -a`.
const SHORT: [&str; 2] = ["-p", "-a"];

/// A web address without its query, which may hold a token.
pub fn without_query(url: &str) -> String {
    let Some((address, _)) = url.split_once('?') else {
        return url.to_owned();
    };
    format!("{address}?{MASK}")
}

/// A command line without secrets.
pub fn without_secrets(words: &[String]) -> Vec<String> {
    let mut is_value = false;
    let mut kept = Vec::with_capacity(words.len());
    for word in words {
        if is_value && !word.starts_with('-') {
            kept.push(MASK.to_owned());
            is_value = false;
            continue;
        }
        is_value = announces_secret(word);
        // A script for a shell is a command line again.
        let is_script = word.contains(char::is_whitespace);
        kept.push(if is_script {
            let inner: Vec<String> = redact(word).split_whitespace().map(str::to_owned).collect();
            without_secrets(&inner).join(" ")
        } else {
            masked(word)
        });
    }
    kept
}

/// Whether the value of an option is the next word.
fn announces_secret(word: &str) -> bool {
    let is_option = word.starts_with('-') && !word.contains('=');
    SHORT.contains(&word) || (is_option && is_secret_name(word))
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

fn masked(word: &str) -> String {
    let word = redact(word);
    if let Some((name, _)) = word.split_once('=')
        && is_secret_name(name)
    {
        return format!("{name}={MASK}");
    }
    // `mysql -pSECRET`; what else it may be is not worth a password.
    if word.starts_with("-p") && word.len() > 2 {
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
        ] {
            let text = kept(line);
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.starts_with(line[0]) && text.contains(MASK), "{text}");
        }
    }

    #[test]
    fn everything_else_stays() {
        let line = [
            "fio",
            "--name=read",
            "--size=1G",
            "--filename",
            "/data/x",
            "-v",
        ];
        assert_eq!(kept(&line), line.join(" "));
    }
}
