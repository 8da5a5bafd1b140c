//! Translates options in hints to options of `dyno ycsb`.

/// Prefixes of options of other commands, with the equivalent of `dyno ycsb`.
const WORDS: [(&str, &str); 9] = [
    ("`--backend ", "`-p dyno.backend="),
    ("`--clients", "`-threads"),
    ("`--timeout", "`-p dyno.timeout"),
    ("`--server ", "`-p dyno.server="),
    ("`--uri", "`-p mongodb.url"),
    ("`--rate", "`-target"),
    ("`--duration", "`-p maxexecutiontime"),
    ("`--records", "`-p recordcount"),
    ("`--operations", "`-p operationcount"),
];

/// Translates the options in a hint to options of `dyno ycsb`.
pub fn in_ycsb_words(hint: &str) -> String {
    WORDS.into_iter().fold(hint.to_owned(), |hint, (from, to)| hint.replace(from, to))
}
