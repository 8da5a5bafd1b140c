//! Errors in the words of `dyno ycsb`, which has properties where other commands have options.

use dyno_engine::Error;
use dyno_load::connect::ConnectError;
use dyno_plan::problem::Problem;
use dyno_plan::ycsb::{Properties, property_of_option};

/// What hints of other commands name, and what `dyno ycsb` has for it.
const WORDS: [(&str, &str); 5] = [
    ("`--backend driver`", "`-p dyno.backend=driver`"),
    ("`--backend wire`", "`-p dyno.backend=wire`"),
    ("`w=1`", "`w=1` or `-p mongodb.writeConcern=acknowledged`"),
    ("`--clients`", "`-threads`"),
    ("`--timeout`", "`-p dyno.timeout=TIME`"),
];

/// A hint that names what `dyno ycsb` takes.
pub(crate) fn hint(text: &str) -> String {
    let mut text = text.to_owned();
    for (option, property) in WORDS {
        text = text.replace(option, property);
    }
    text
}

/// Problems of properties with such hints.
pub(crate) fn problems(problems: Vec<Problem>) -> Vec<Problem> {
    let renamed = problems.into_iter().map(|mut problem| {
        problem.hint = problem.hint.as_deref().map(hint);
        problem
    });
    renamed.collect()
}

/// An error of a run with such a hint. Options of the connection string that came from properties are called as they were given.
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
    fn hints_name_what_the_command_takes() {
        let given = "remove it, or use `--backend driver`";
        assert_eq!(hint(given), "remove it, or use `-p dyno.backend=driver`");
    }

    #[test]
    fn options_are_named_as_the_properties_that_were_given() {
        let (target, _) = dyno_plan::uri::parse("mongodb://h/?readPreference=secondary").unwrap();
        let options = target.unsupported_by_wire;
        let mut properties = Properties::default();
        properties.set("mongodb.readPreference", "secondary");
        let failure = Error::from(ConnectError::Unsupported { options });
        let failure = error(
            failure.context("cannot use the connection string"),
            &properties,
        );
        let text = failure.reason();
        assert!(
            text.contains("`mongodb.readPreference=secondary`"),
            "{text}"
        );
        assert!(failure.hint.unwrap().contains("dyno.backend=driver"));
    }
}
