//! Checks the operations: their weights, commands, variables and expectations.

use super::Checker;
use super::lookup::Sources;
use super::references::Scope;
use super::size::{MAX_MESSAGE_BYTES, Sizes};
use crate::workload::model::{Each, Operation, Step, When};
use crate::workload::template::{Generator, Template, Value};
use bson::Bson;

/// Elements at most for which a step is repeated.
const MAX_ELEMENTS: u64 = 100_000;

impl Checker<'_> {
    pub(super) fn operations(&mut self, sources: &Sources) {
        let workload = self.workload;
        let operations = &workload.operations;
        self.unique_names("operations", operations.iter().map(|operation| operation.name.as_str()));
        self.weights(operations);
        for (index, operation) in operations.iter().enumerate() {
            self.operation(&format!("operations[{index}]"), operation, sources);
        }
    }

    fn weights(&mut self, operations: &[Operation]) {
        let mut sum = None;
        for (index, operation) in operations.iter().enumerate() {
            let key = format!("operations[{index}].weight");
            match (operation.weight, operation.rate) {
                (Some(weight), None) if weight >= 0.0 && weight.is_finite() => {
                    *sum.get_or_insert(0.0) += weight
                }
                (Some(weight), None) => {
                    self.wrong(&key, format!("`{key}` is {weight}, and not a number from 0"));
                }
                (Some(_), Some(_)) => {
                    self.wrong(&key, format!("`operations[{index}]` has both `weight` and `rate`"));
                }
                (None, None) => {
                    self.missing(&key, format!("`operations[{index}]` needs `weight` or `rate`"))
                }
                (None, Some(_)) => {}
            }
        }
        if sum == Some(0.0) {
            self.wrong("operations[0].weight", "all weights of operations are 0");
        }
    }

    fn operation(&mut self, key: &str, operation: &Operation, sources: &Sources) {
        self.commands(key, operation);
        self.transaction(key, operation);
        if let Some(expect) = &operation.expect {
            self.expected(&format!("{key}.expect"), expect);
        }
        self.optional_constant(&format!("{key}.read_concern"), operation.read_concern.as_ref());
        self.optional_constant(&format!("{key}.write_concern"), operation.write_concern.as_ref());
        self.optional_constant(
            &format!("{key}.read_preference"),
            operation.read_preference.as_ref(),
        );
        let variables = self.variables(key, &operation.variables);
        let has_circle = self.circle_of_variables(key, &variables);
        let steps = operation.all_steps();
        let scope = Scope {
            sources,
            variables: &variables,
            element: None,
            allows_new: true,
            replies: Some(steps.len()),
            steps: steps.len(),
        };
        for (name, template) in &variables {
            self.references(&format!("{key}.let.{name}"), template, scope);
        }
        for (index, step) in steps.iter().enumerate() {
            let key = match operation.command {
                Some(_) => key.to_owned(),
                None => format!("{key}.steps[{index}]"),
            };
            self.step(&key, step, Scope { replies: Some(index), ..scope }, has_circle);
        }
    }

    fn commands(&mut self, key: &str, operation: &Operation) {
        match (&operation.command, operation.steps.is_empty()) {
            (Some(_), false) => {
                self.wrong(
                    &format!("{key}.steps"),
                    format!("`{key}` has both `command` and `steps`"),
                );
            }
            (None, true) => self
                .missing(&format!("{key}.command"), format!("`{key}` needs `command` or `steps`")),
            _ => {}
        }
        if operation.command.is_none() {
            let (each, when) = (operation.each.is_some(), operation.when.is_some());
            for (name, _) in
                [("each", each), ("when", when)].into_iter().filter(|(_, is_set)| *is_set)
            {
                self.wrong(
                    &format!("{key}.{name}"),
                    format!("`{key}.{name}` belongs to a step or a `command`"),
                );
            }
        }
    }

    fn transaction(&mut self, key: &str, operation: &Operation) {
        let Some(share) = operation.abort else { return };
        let key = format!("{key}.abort");
        if !(0.0..=1.0).contains(&share) {
            self.wrong(&key, format!("`{key}` is {share}, and not a number from 0 to 1"));
        }
        if !operation.transaction {
            self.wrong(&key, format!("`{key}` needs `transaction = true`"));
        }
    }

    /// Checks a step. `has_circle`: a variable depends on itself.
    fn step(&mut self, key: &str, step: &Step, scope: Scope<'_>, has_circle: bool) {
        if let Some(When { count, is }) = &step.when {
            self.expected(&format!("{key}.when.is"), is);
            let key = format!("{key}.when.count");
            if let Some(template) = self.template(&key, count) {
                self.references(&key, &template, scope);
            }
        }
        let each = step.each.as_ref();
        let list = each.and_then(|each| self.each(&format!("{key}.each"), each, scope));
        let element = each.map(|each| each.name.as_str());
        let key = format!("{key}.command");
        let Some(command) = self.document(&key, &step.command) else { return };
        self.references(&key, &command, Scope { element, ..scope });
        if matches!(&command.value, Value::Constant(Bson::Document(document)) if document.is_empty())
        {
            self.wrong(&key, format!("`{key}` is empty, and not a command"));
        }
        // Sizes of values that depend on themselves have no limit.
        if !has_circle {
            self.message_size(&key, &command, element.zip(list), scope);
        }
    }

    /// Checks the list of `each`, and returns it.
    fn each(&mut self, key: &str, each: &Each, scope: Scope<'_>) -> Option<Template> {
        let name_key = format!("{key}.name");
        self.variable_name(&name_key, &each.name);
        if scope.variables.contains_key(&each.name) {
            self.wrong(
                &name_key,
                format!("`{name_key}`: `let` already has the name `{}`", each.name),
            );
        }
        let list_key = format!("{key}.of");
        let list = self.template(&list_key, &each.of)?;
        self.references(&list_key, &list, scope);
        let key = format!("{key}.at_most");
        match (each.at_most, greatest_length(&list.value)) {
            (Some(limit), _) if (1..=MAX_ELEMENTS).contains(&u64::from(limit)) => {}
            (Some(limit), _) => {
                self.wrong(
                    &key,
                    format!("`{key}` is {limit}, and not a number from 1 to {MAX_ELEMENTS}"),
                );
            }
            (None, Some(length)) if length <= MAX_ELEMENTS => {}
            (None, Some(length)) => {
                let message = format!(
                    "`{list_key}` can have {length} elements, and a step repeats {MAX_ELEMENTS} times at most"
                );
                self.wrong(&list_key, message);
            }
            (None, None) => {
                let message =
                    format!("`{key}` is missing: the template does not limit the list's length");
                self.missing(&key, message);
            }
        }
        Some(list)
    }

    /// Refuses a command that can be too large. `element` has the name of the element, and its list.
    fn message_size(
        &mut self,
        key: &str,
        command: &Template,
        element: Option<(&str, Template)>,
        scope: Scope<'_>,
    ) {
        let mut variables = scope.variables.clone();
        // An element is not larger than its list.
        variables.extend(element.map(|(name, list)| (name.to_owned(), list)));
        let bytes = Sizes::new(scope.sources).of_value(&command.value, &variables);
        if bytes > MAX_MESSAGE_BYTES {
            let message = format!(
                "`{key}` can have {bytes} bytes, and the server accepts {MAX_MESSAGE_BYTES}"
            );
            self.wrong(key, message);
        }
    }
}

/// Number of elements that a list can have; `None` if the template does not limit it.
fn greatest_length(value: &Value) -> Option<u64> {
    match value {
        Value::Constant(Bson::Array(items)) => Some(items.len() as u64),
        Value::Array(values) => Some(values.len() as u64),
        Value::Generated(generator) => match generator.as_ref() {
            Generator::Array { length, .. } => Some(u64::from(length.max)),
            Generator::Choose { values, .. } => values
                .iter()
                .map(greatest_length)
                .try_fold(0, |longest, length| Some(length?.max(longest))),
            _ => None,
        },
        _ => None,
    }
}
