//! Options that hints name, in the words of `dyno ycsb`.

/// Beginnings of options of other commands, and what says the same to `dyno ycsb`.
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

/// A hint that names options, with the options that `dyno ycsb` has.
pub fn in_ycsb_words(hint: &str) -> String {
    WORDS
        .into_iter()
        .fold(hint.to_owned(), |hint, (from, to)| hint.replace(from, to))
}
