//! Server parameters that clients read and set, and their effect on service times and replies.

use super::behaviour::{Fault, FaultRule, Parameter};
use super::replies::refusal;
use bson::{Bson, Document, doc};
use dyno_wire::bson::{self as wire, Element, Value};

const INTERNAL_ERROR: i32 = 1;
const BAD_VALUE: i32 = 2;
const TYPE_MISMATCH: i32 = 14;
/// Recent servers refuse unknown names with this code, 6.0 servers without a code.
const INVALID_OPTIONS: i32 = 72;

/// Arguments that any command may have, in addition to names with a leading `$`.
const OF_ANY_COMMAND: [&str; 10] = [
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "comment",
    "databaseVersion",
    "lsid",
    "maxTimeMS",
    "readConcern",
    "txnNumber",
    "writeConcern",
];

/// Names of other elements of the commands and their replies.
const OF_PARAMETER_COMMANDS: [&str; 8] =
    ["getParameter", "setParameter", "help", "was", "ok", "errmsg", "code", "codeName"];

/// Whether a parameter of this name would be confused with other elements of the commands and their replies.
pub(super) fn is_reserved(name: &str) -> bool {
    OF_ANY_COMMAND.contains(&name) || OF_PARAMETER_COMMANDS.contains(&name)
}

/// The parameters with their current values.
#[derive(Debug)]
pub(super) struct Parameters(Vec<Parameter>);

impl Parameters {
    pub(super) fn new(parameters: Vec<Parameter>) -> Self {
        Parameters(parameters)
    }

    /// Factor of the service time: 1 + Σ weight · d² + Σ product · d · d′, see [`Behaviour::parameters`].
    ///
    /// [`Behaviour::parameters`]: super::Behaviour::parameters
    pub(super) fn factor(&self) -> f64 {
        let doublings = |parameter: &Parameter| Some((parameter.value / parameter.best?).log2());
        let excess = self.0.iter().filter_map(|parameter| {
            let own = doublings(parameter)?;
            let other = self.0.iter().find(|other| parameter.with.as_ref() == Some(&other.name));
            let product = other.and_then(doublings).zip(parameter.product);
            let product = product.map_or(0.0, |(other, product)| product * own * other);
            Some(parameter.weight? * own * own + product)
        });
        1.0 + excess.sum::<f64>()
    }

    /// The fault of every data command while a value is above its limit.
    pub(super) fn fault(&self) -> Option<FaultRule> {
        let is_above =
            |parameter: &Parameter| parameter.limit.is_some_and(|limit| parameter.value > limit);
        self.0
            .iter()
            .any(is_above)
            .then_some(FaultRule { every: 1, kind: Fault::ErrorCode(INTERNAL_ERROR) })
    }

    /// The reply to `getParameter`.
    pub(super) fn get(&self, command: wire::Document<'_>) -> Document {
        let first = command.elements().next().and_then(Result::ok);
        let (mut all, mut details) = (false, false);
        match first.map(|element| element.value()) {
            Some(Ok(Value::String("*"))) => all = true,
            Some(Ok(Value::Document(options))) => {
                all = is_set(options, "allParameters");
                details = is_set(options, "showDetails");
            }
            _ => {}
        }
        let is_asked_for =
            |parameter: &&Parameter| all || matches!(command.find(&parameter.name), Ok(Some(_)));
        let mut reply = Document::new();
        for parameter in self.0.iter().filter(is_asked_for) {
            let value = number(parameter.value);
            let shown = if details {
                doc! {"value": value, "settableAtRuntime": true, "settableAtStartup": true}.into()
            } else {
                value
            };
            reply.insert(&parameter.name, shown);
        }
        if reply.is_empty() {
            return refusal(INVALID_OPTIONS, "no option found to get");
        }
        reply.insert("ok", 1.0);
        reply
    }

    /// Executes `setParameter` and returns the reply. As on servers, an unknown name changes no value, and an invalid
    /// value prevents the following changes.
    pub(super) fn set(&mut self, command: wire::Document<'_>) -> Document {
        let mut asked = Vec::new();
        for element in command.elements().skip(1).map_while(Result::ok) {
            let name = String::from_utf8_lossy(element.name);
            if name.starts_with('$') || OF_ANY_COMMAND.contains(&&*name) {
                continue;
            }
            let Some(index) = self.0.iter().position(|parameter| parameter.name == name) else {
                let message = format!(
                    "attempted to set unrecognized parameter [{name}], use help:true to see options "
                );
                return refusal(INVALID_OPTIONS, &message);
            };
            asked.push((index, element));
        }
        let mut was = None;
        for (index, element) in asked {
            let parameter = &mut self.0[index];
            match new_value(parameter, element) {
                Ok(value) => {
                    let old = std::mem::replace(&mut parameter.value, value);
                    was.get_or_insert(old);
                }
                Err(refused) => return refused,
            }
        }
        match was {
            Some(was) => doc! {"was": number(was), "ok": 1.0},
            None => {
                refusal(INVALID_OPTIONS, "no option found to set, use help:true to see options ")
            }
        }
    }
}

/// The new value of a parameter, or the reply that refuses it.
fn new_value(parameter: &Parameter, element: Element<'_>) -> Result<f64, Document> {
    let name = &parameter.name;
    let value = match element.value() {
        Ok(Value::Double(value)) => value,
        Ok(Value::Int32(value)) => f64::from(value),
        Ok(Value::Int64(value)) => value as f64,
        _ => {
            let message = format!("Failed validating {name}: Unable to coerce value to double");
            return Err(refusal(TYPE_MISMATCH, &message));
        }
    };
    if parameter.allows(value) {
        return Ok(value);
    }
    let message = if value.is_finite() {
        format!("Invalid value for parameter {name}: {value} is not greater than 0")
    } else {
        format!("Invalid value for parameter {name}: {value} is not finite")
    };
    Err(refusal(BAD_VALUE, &message))
}

fn is_set(options: wire::Document<'_>, name: &str) -> bool {
    let value = options.find(name).ok().flatten().map(|element| element.number());
    matches!(value, Some(Ok(Some(number))) if number != 0)
}

/// The smallest numeric type that holds the value, as for parameters of servers.
fn number(value: f64) -> Bson {
    let whole = value as i64;
    if whole as f64 != value || whole == i64::MAX {
        return Bson::Double(value);
    }
    i32::try_from(whole).map_or(Bson::Int64(whole), Bson::Int32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters::new(vec![
            Parameter { best: Some(64.0), weight: Some(0.5), ..Parameter::new("tickets", 128.0) },
            Parameter {
                best: Some(0.5),
                weight: Some(2.0),
                limit: Some(4.0),
                ..Parameter::new("share", 0.25)
            },
            Parameter { limit: Some(100.0), ..Parameter::new("batch", 100.0) },
        ])
    }

    fn get(parameters: &Parameters, command: &Document) -> Document {
        let bytes = command.to_vec().unwrap();
        parameters.get(wire::Document::new(&bytes).unwrap())
    }

    fn set(parameters: &mut Parameters, values: Document) -> Document {
        let mut command = doc! {"setParameter": 1};
        command.extend(values);
        command.insert("$db", "admin");
        let bytes = command.to_vec().unwrap();
        parameters.set(wire::Document::new(&bytes).unwrap())
    }

    fn refused(reply: &Document) -> (i32, &str, &str) {
        assert_eq!(reply.get_f64("ok").unwrap(), 0.0, "{reply}");
        (
            reply.get_i32("code").unwrap(),
            reply.get_str("codeName").unwrap(),
            reply.get_str("errmsg").unwrap(),
        )
    }

    #[test]
    fn values_are_read_by_name_or_all_at_once() {
        let parameters = parameters();
        let all = doc! {"tickets": 128, "share": 0.25, "batch": 100, "ok": 1.0};
        for wanted in [
            doc! {"getParameter": "*"},
            doc! {"getParameter": {"allParameters": true}},
            doc! {"getParameter": 1, "batch": 1, "share": 1, "tickets": 1},
        ] {
            assert_eq!(get(&parameters, &wanted), all, "{wanted}");
        }
        assert_eq!(
            get(&parameters, &doc! {"getParameter": 1, "share": 1, "syncdelay": 1, "$db": "admin"}),
            doc! {"share": 0.25, "ok": 1.0}
        );
        let details = doc! {"getParameter": {"showDetails": true}, "batch": 1};
        let batch = doc! {"value": 100, "settableAtRuntime": true, "settableAtStartup": true};
        assert_eq!(get(&parameters, &details), doc! {"batch": batch, "ok": 1.0});
    }

    #[test]
    fn missing_parameters_are_not_found() {
        for wanted in [
            doc! {"getParameter": 1},
            doc! {"getParameter": 1, "syncdelay": 1},
            doc! {"getParameter": "x"},
            doc! {"getParameter": {"allParameters": false}},
        ] {
            let reply = get(&parameters(), &wanted);
            assert_eq!(refused(&reply), (72, "InvalidOptions", "no option found to get"));
        }
        let none = Parameters::new(Vec::new());
        assert_eq!(refused(&get(&none, &doc! {"getParameter": "*"})).0, 72);
    }

    #[test]
    fn setting_a_value_returns_the_old_one() {
        let mut parameters = parameters();
        for (value, was) in [
            (Bson::Int64(32), Bson::Int32(128)),
            (Bson::Double(2.5), Bson::Int32(32)),
            (Bson::Double(3e9), Bson::Double(2.5)),
            (Bson::Double(1e300), Bson::Int64(3_000_000_000)),
            (Bson::Int32(7), Bson::Double(1e300)),
        ] {
            let reply = set(&mut parameters, doc! {"tickets": value, "comment": "trial"});
            assert_eq!(reply, doc! {"was": was, "ok": 1.0});
        }
        // With several parameters, the reply has the old value of the first.
        let reply = set(&mut parameters, doc! {"batch": -3, "tickets": 8});
        assert_eq!(reply, doc! {"was": 100, "ok": 1.0});
        assert_eq!(
            get(&parameters, &doc! {"getParameter": "*"}),
            doc! {"tickets": 8, "share": 0.25, "batch": -3, "ok": 1.0}
        );
    }

    #[test]
    fn impossible_settings_are_refused_and_change_nothing() {
        let mut parameters = parameters();
        let before = get(&parameters, &doc! {"getParameter": "*"});
        let unknown = set(&mut parameters, doc! {"tickets": 5, "ticket": 1});
        let message =
            "attempted to set unrecognized parameter [ticket], use help:true to see options ";
        assert_eq!(refused(&unknown), (72, "InvalidOptions", message));
        assert_eq!(refused(&set(&mut parameters, doc! {})).0, 72);
        for value in [Bson::from("5"), true.into(), Bson::Null, doc! {"a": 1}.into()] {
            let reply = set(&mut parameters, doc! {"batch": value});
            assert_eq!(refused(&reply).1, "TypeMismatch");
        }
        for value in [Bson::Int32(0), Bson::Double(-0.5), f64::NAN.into(), f64::INFINITY.into()] {
            let reply = set(&mut parameters, doc! {"share": value});
            assert_eq!(refused(&reply).1, "BadValue");
        }
        assert_eq!(get(&parameters, &doc! {"getParameter": "*"}), before);
    }

    #[test]
    fn the_factor_is_the_sum_over_the_distances_in_doublings() {
        let mut parameters = parameters();
        // One doubling above and one below.
        assert_eq!(parameters.factor(), 1.0 + 0.5 + 2.0);
        set(&mut parameters, doc! {"tickets": 16, "batch": 1});
        assert_eq!(parameters.factor(), 1.0 + 0.5 * 4.0 + 2.0);
        set(&mut parameters, doc! {"tickets": 64, "share": 0.5});
        assert_eq!(parameters.factor(), 1.0);
        assert_eq!(Parameters::new(Vec::new()).factor(), 1.0);
    }

    #[test]
    fn the_effect_of_one_value_depends_on_the_other() {
        let mut parameters = parameters();
        parameters.0[0].with = Some("share".to_owned());
        parameters.0[0].product = Some(-1.5);
        // One doubling above and one below: the product of both is -1.
        assert_eq!(parameters.factor(), 1.0 + 0.5 + 2.0 + 1.5);
        set(&mut parameters, doc! {"share": 2.0});
        assert_eq!(parameters.factor(), 1.0 + 0.5 + 2.0 * 4.0 - 1.5 * 2.0);
        set(&mut parameters, doc! {"tickets": 64});
        assert_eq!(parameters.factor(), 1.0 + 2.0 * 4.0);
    }

    #[test]
    fn one_value_above_its_limit_is_enough_for_a_fault() {
        let mut parameters = parameters();
        assert_eq!(parameters.fault(), None);
        set(&mut parameters, doc! {"batch": 100.5});
        let met = parameters.fault().unwrap();
        assert_eq!((met.every, met.kind), (1, Fault::ErrorCode(1)));
        set(&mut parameters, doc! {"batch": -1, "tickets": 1e9});
        assert_eq!(parameters.fault(), None);
    }
}
