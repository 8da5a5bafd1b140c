//! `docs/workload-language.md` has the generators and laws of the code. `UPDATE_SCHEMA=1` rewrites them, and keeps the outputs.

use dyno_plan::workload::template::reference;
use std::collections::HashMap;
use std::path::Path;

const START: &str = "<!-- reference -->\n";
const END: &str = "<!-- end of reference -->\n";
const OUTPUT: &str = "<!-- output of ";
const OUTPUT_END: &str = "<!-- end of output -->\n";

/// The text without its outputs, and the outputs by name.
fn split_outputs(text: &str) -> (String, HashMap<&str, &str>) {
    let mut outputs = HashMap::new();
    let mut parts = text.split(OUTPUT);
    let mut rest = parts.next().expect("`split` gives a part").to_owned();
    for part in parts {
        let (name, part) = part.split_once(" -->\n").expect("the marker has an end");
        let (output, after) = part.split_once(OUTPUT_END).expect("the output has an end");
        outputs.insert(name, output);
        rest.push_str(&format!("{OUTPUT}{name} -->\n{OUTPUT_END}{after}"));
    }
    (rest, outputs)
}

#[test]
fn documentation_has_the_examples_of_the_language() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workload-language.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(START).expect("the reference has a begin");
    let (found, after) = rest.split_once(END).expect("the reference has an end");
    let (found, outputs) = split_outputs(found);
    let expected = format!("\n{}\n", reference());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let mut updated = expected.clone();
        for (name, output) in outputs {
            let marker = format!("{OUTPUT}{name} -->\n");
            updated = updated.replace(&marker, &format!("{marker}{output}"));
        }
        std::fs::write(path, format!("{before}{START}{updated}{END}{after}")).unwrap();
    }
    assert!(
        found == expected,
        "docs/workload-language.md is out of date: run with `UPDATE_SCHEMA=1`"
    );
}
