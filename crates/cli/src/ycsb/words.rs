//! Rewrites hints for `dyno ycsb`, which has properties instead of options.

use dyno_engine::Error;
use dyno_load::connect::ConnectError;
use dyno_plan::problem::Problem;
use dyno_plan::ycsb::{Properties, property_of_option};

/// Options in hints of other commands, and their equivalents in `dyno ycsb`.
const WORDS: [(&str, &str); 5] = [
    ("`--backend driver`", "`-p dyno.backend=driver`"),
    ("`--backend wire`", "`-p dyno.backend=wire`"),
    ("`w=1`", "`w=1` or `-p mongodb.writeConcern=acknowledged`"),
    ("`--clients`", "`-threads`"),
    ("`--timeout`", "`-p dyno.timeout=TIME`"),
];

/// Rewrites a hint for `dyno ycsb`.
pub(crate) fn hint(text: &str) -> String {
    let mut text = text.to_owned();
    for (option, property) in WORDS {
        text = text.replace(option, property);
    }
    text
}

/// Rewrites the hints of property problems.
pub(crate) fn problems(problems: Vec<Problem>) -> Vec<Problem> {
    let renamed = problems.into_iter().map(|mut problem| {
        problem.hint = problem.hint.as_deref().map(hint);
        problem
    });
    renamed.collect()
}

/// Rewrites the hint of a run's error, and names connection string options by the properties that set them.
pub(crate) fn error(mut error: Error, properties: &Properties) -> Error {
    error.hint = error.hint.as_deref().map(hint);
    if let Some(ConnectError::Unsupported { options }) = error.cause.downcast_mut() {
        for option in options {
            let given = property_of_option(&option.name)
                .and_then(|name| Some((name, properties.get(name)?)));
            if let Some((name, value)) = given {
                option.name = name.to_owned();
                option.value = value.to_owned();
            }
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_ycsb_properties() {
        let given = "remove it, or use `--backend driver`";
        assert_eq!(hint(given), "remove it, or use `-p dyno.backend=driver`");
    }

    #[test]
    fn options_are_named_by_their_properties() {
        let (target, _) = dyno_plan::uri::parse("mongodb://h/?readPreference=secondary").unwrap();
        let options = target.unsupported_by_wire;
        let mut properties = Properties::default();
        properties.set("mongodb.readPreference", "secondary");
        let failure = Error::from(ConnectError::Unsupported { options });
        let failure = error(failure.context("cannot use the connection string"), &properties);
        let text = failure.reason();
        assert!(text.contains("`mongodb.readPreference=secondary`"), "{text}");
        assert!(failure.hint.unwrap().contains("dyno.backend=driver"));
    }
}
