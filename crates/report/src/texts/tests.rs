use super::*;
use dyno_record::experiment::{Finding, Law};
use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;

fn variables(code: &str) -> BTreeSet<String> {
    let template = CATALOGUE.get_template(code);
    let template = template.unwrap_or_else(|error| panic!("`{code}`: {error}"));
    template.undeclared_variables(false).into_iter().collect()
}

/// The arguments of each `statement!(…)`.
fn statements(source: &str) -> Vec<&str> {
    let calls = source.match_indices("statement!(");
    let inside = calls.map(|(place, call)| {
        let start = place + call.len();
        let mut depth = 1;
        let end = source[start..].find(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        &source[start..start + end.unwrap()]
    });
    inside.collect()
}

/// The literal code, if there is one, and the names of the values.
fn call(inside: &str) -> (Option<&str>, BTreeSet<String>) {
    let code = inside.trim_start().strip_prefix('"');
    let code = code.and_then(|rest| rest.split('"').next());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before = inside.split(" = ").filter_map(|part| {
        let name = part.rsplit(|c| !is_name(c)).next()?;
        (!name.is_empty()).then(|| name.to_owned())
    });
    (code, before.collect())
}

#[test]
fn every_statement_has_a_text_and_gives_its_values() {
    let mut problems = Vec::new();
    let mut used = BTreeSet::new();
    let all = templates();
    for (path, source) in dyno_testkit::sources() {
        // Parts between quotation marks, and the parts in between.
        let quoted: BTreeSet<&str> = source.split('"').collect();
        let mut given = BTreeSet::new();
        for (code, names) in statements(&source).into_iter().map(call) {
            given.extend(names.clone());
            let Some(code) = code else { continue };
            used.insert(code.to_owned());
            if CATALOGUE.get_template(code).is_err() {
                problems.push(format!("`{code}` of {} has no text", path.display()));
                continue;
            }
            let hint = format!("{code}{HINT}");
            let mut asked = variables(code);
            if CATALOGUE.get_template(&hint).is_ok() {
                asked.extend(variables(&hint));
            }
            let with = |name: &String| source.contains(&format!(".with(\"{name}\""));
            asked.retain(|name| !names.contains(name) && !with(name));
            if !asked.is_empty() {
                problems.push(format!("`{code}` asks for {asked:?} and gets {names:?}"));
            }
        }
        // Codes that are chosen before the statement is made.
        for (name, _) in &all {
            if !used.contains(name) && quoted.contains(name.as_str()) {
                let is_given = |one: &String| given.contains(one) || quoted.contains(one.as_str());
                if variables(name).iter().all(is_given) {
                    used.insert(name.clone());
                }
            }
        }
    }
    let laws = [
        Law::Utilization,
        Law::Little,
        Law::ResponseTime,
        Law::ForcedFlow,
        Law::RateBound,
        Law::ResponseBound,
    ];
    for law in laws.map(|law| dyno_record::document::variant_name(&law)) {
        used.extend([format!("law.{law}"), format!("law-broken.{law}")]);
    }
    used.extend(dyno_analyze::verdict::codes());
    used.insert(dyno_record::statement::RECORDED.to_owned());
    for code in &used {
        if CATALOGUE.get_template(code).is_err() {
            problems.push(format!("`{code}` has no text"));
        }
    }
    for (name, _) in templates() {
        let code = name.strip_suffix(HINT).unwrap_or(&name);
        if !used.contains(code) {
            problems.push(format!("nothing says `{code}`"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn catalogue_files_are_readable_and_codes_are_unique() {
    let mut codes = BTreeSet::new();
    for file in FILES {
        let table: toml::Table = file.parse().unwrap();
        let mut found = Vec::new();
        collect("", &table, &mut found);
        assert!(!found.is_empty());
        for (name, _) in found {
            assert!(codes.insert(name.clone()), "`{name}` is there twice");
            assert!(CATALOGUE.get_template(&name).is_ok(), "`{name}`");
        }
    }
}

/// A value that fits a template.
fn sample(name: &str, template: &str) -> Value {
    // For a name that selects one of several words, use the first one.
    if let Some(end) = template.find(&format!("}}[{name}]")) {
        let start = template[..end].rfind("{'").unwrap() + 2;
        return Value::Text(template[start..].split('\'').next().unwrap().to_owned());
    }
    let has = |what: &str| template.contains(&what.replace('N', name));
    let number = Number::new(1_234.5, Unit::Plain);
    let rate = Number::new(1_234.5, Unit::PerSecond).between(1_200.0, 1_300.0);
    if has("N.hint") || has("N.code") {
        let statement = statement!("host-setting-not-read", file = "max_sectors_kb");
        return Value::Statement(statement);
    }
    if has("in N %") && has("demand.resource") {
        let part = |name: &str| statement!("demand", resource = name, demand = rate);
        return Value::List(["the disk", "the CPU"].map(part).map(Value::Statement).into());
    }
    if ["N|list", "N|join", "in N %", "(N +", "N|exact|list"].into_iter().any(has) {
        let both = ["one", "two"].map(|text| Value::Text(text.to_owned()));
        return if has("N|exact|list") || has("N|plural") {
            Value::List(vec![Value::Number(rate), Value::Number(rate)])
        } else {
            Value::List(both.into())
        };
    }
    if has("N|replace") || has("or N") {
        return Value::Text(format!("<{name}>"));
    }
    let is_ratio = has("N|change") || has("N|more");
    Value::Number(if is_ratio {
        Number::new(1.05, Unit::Plain).between(1.02, 1.08)
    } else if has("N|") {
        rate
    } else {
        number
    })
}

#[test]
fn the_texts_of_all_codes() {
    let mut all = String::new();
    for (name, template) in templates() {
        let names = variables(&name);
        let values = names.iter();
        let values: BTreeMap<String, Value> =
            values.map(|one| (one.clone(), sample(one, &template))).collect();
        let of = |values: BTreeMap<String, Value>| {
            let code = name.clone();
            render(&name, &Statement { code, values })
        };
        let whole = of(values.clone());
        writeln!(all, "{name}\n    {}", whole.as_deref().unwrap_or("cannot be written")).unwrap();
        let mut reported: BTreeSet<String> = whole.into_iter().collect();
        // The text without one of its optional values.
        for one in &names {
            let mut fewer = values.clone();
            fewer.remove(one);
            let text = of(fewer).filter(|text| reported.insert(text.clone()));
            if let Some(text) = text {
                writeln!(all, "    {text}").unwrap();
            }
        }
    }
    assert!(!all.contains("cannot be written"), "{all}");
    insta::assert_snapshot!(all);
}

#[test]
fn statement_without_text_is_shown_with_its_values() {
    let later = statement!("later", rate = Number::new(1_000.0, Unit::PerSecond));
    assert_eq!(text(&later), "later (rate: 1,000/s)");
    assert_eq!(hint(&later), None);
    // A value is missing.
    assert_eq!(text(&Statement::new("host-setting-not-read")), "host-setting-not-read");
}

#[test]
fn number_that_is_not_finite_is_shown_as_unknown() {
    let rate = Number::new(f64::NAN, Unit::PerSecond);
    let said = statement!("achieved", rate = rate);
    assert!(text(&said).starts_with("unknown "), "{}", text(&said));
}

#[test]
fn documents_for_programs_have_codes_values_and_texts() {
    let unread = statement!("host-setting-not-read", file = "max_sectors_kb");
    let caveat = Caveat::of_run(CaveatKind::MachineSetting, unread.clone());
    let pair = statement!("single-pair");
    let found = Finding::warning(pair.clone(), vec![unread.clone()]);
    let json = with_texts(&json!({"caveats": [caveat], "findings": [found]})).unwrap();
    let caveat = &json["caveats"][0];
    assert_eq!(caveat["code"], "host-setting-not-read");
    assert_eq!(caveat["values"], json!({"file": "max_sectors_kb"}));
    assert_eq!(caveat["hint"], hint(&unread).unwrap());
    assert_eq!(caveat["message"], text(&unread));
    assert_ne!(caveat["message"], unread.to_string());
    let found = &json["findings"][0];
    assert_eq!(found["text"], text(&pair));
    assert_ne!(found["text"], pair.to_string());
    assert_eq!(found["evidence"][0]["text"], text(&unread));
}

#[test]
fn plain_sentences_are_shown_as_they_are() {
    let plain = Statement::recorded("3 failed").with("hint", "look");
    assert_eq!(text(&plain), "3 failed");
    assert_eq!(hint(&plain).as_deref(), Some("look"));
}

#[test]
fn lists_end_with_and() {
    assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    assert_eq!(list(&["a"]), "a");
    assert_eq!(list(&[""; 0]), "");
}
