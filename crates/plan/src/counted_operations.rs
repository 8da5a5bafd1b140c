//! The operations that a plan counts: those with a weight or of its own, and the inserts of its load phase.

use crate::model::{OperationWeights, Plan};
use crate::operation::{
    DELETE, Effect, INSERT, INSERT_BATCH, Operation, Operations, READ, READ_MODIFY_WRITE, SCAN,
    UPDATE,
};
use crate::workload;

impl Operations {
    /// Operations with a weight, their parts, and the inserts of a load phase with `batch` documents per command.
    pub fn of_weights(weights: &OperationWeights, batch: u32) -> Self {
        let has_pairs = weights.read_modify_write > 0.0;
        let all = [
            (READ, Effect::Read, weights.read > 0.0 || has_pairs),
            (UPDATE, Effect::Update, weights.update > 0.0 || has_pairs),
            (INSERT, Effect::Insert, weights.insert > 0.0 || batch <= 1),
            (SCAN, Effect::Read, weights.scan > 0.0),
            (READ_MODIFY_WRITE, Effect::Update, has_pairs),
            (DELETE, Effect::Delete, weights.delete > 0.0),
            (INSERT_BATCH, Effect::Insert, batch > 1),
        ];
        let counted = all.into_iter().filter(|(_, _, counts)| *counts);
        let mut operations: Vec<Operation> =
            counted.map(|(name, effect, _)| Operation::new(name, effect)).collect();
        if let Some(pair) = operations.iter_mut().find(|one| one.name == READ_MODIFY_WRITE) {
            pair.parts = vec![READ.into(), UPDATE.into()];
        }
        operations.into()
    }
}

impl Operations {
    /// Own operations, each before its steps if it has several, and the inserts of a load phase with `batch` documents per command.
    fn of_own(own: &[workload::Operation], batch: u32) -> Self {
        let counted = own.iter().flat_map(|operation| {
            let whole = Operation::new(&operation.name, operation.effect());
            let steps = operation.counted_steps().into_iter().map(|(name, effect)| Operation {
                step_of: Some(operation.name.clone()),
                ..Operation::new(&name, effect)
            });
            std::iter::once(whole).chain(steps)
        });
        let mut operations: Vec<Operation> = counted.collect();
        let load = if batch > 1 { INSERT_BATCH } else { INSERT };
        if operations.iter().all(|operation| operation.name != load) {
            operations.push(Operation::new(load, Effect::Insert));
        }
        operations.into()
    }
}

impl Plan {
    /// The operations that a run of this plan counts.
    pub fn counted_operations(&self) -> Operations {
        if self.operations.own.is_empty() {
            return Operations::of_weights(&self.operations, self.client.batch);
        }
        Operations::of_own(&self.operations.own, self.client.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(operations: &Operations) -> Vec<&str> {
        operations.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn operations_of_a_plan_are_those_with_weight_and_of_the_load() {
        let mut plan = crate::builtin::find("a").expect("it is built in");
        assert_eq!(names(&plan.counted_operations()), [READ, UPDATE, INSERT_BATCH]);
        plan.client.batch = 1;
        plan.operations = OperationWeights { read_modify_write: 1.0, ..Default::default() };
        let operations = plan.counted_operations();
        assert_eq!(names(&operations), [READ, UPDATE, INSERT, READ_MODIFY_WRITE]);
        let id = operations.id(READ_MODIFY_WRITE).expect("it is listed");
        assert_eq!((id.index(), operations[id].name.as_str()), (3, READ_MODIFY_WRITE));
        assert!(operations.has_parts(READ_MODIFY_WRITE) && !operations.has_parts(READ));
        assert_eq!(operations.id(SCAN), None);
    }

    #[test]
    fn own_operations_count_by_name_with_their_effects() {
        let mut plan = crate::builtin::find("a").expect("it is built in");
        plan.operations = OperationWeights::default();
        let own = |name: &str, command: &str| workload::Operation {
            name: name.to_owned(),
            command: Some(command.to_owned()),
            ..Default::default()
        };
        plan.operations.own = vec![
            own("orders of a customer", "{find: 'orders'}"),
            own("insert", "{insert: 'orders', documents: ['%new orders']}"),
            own("pay", "{findAndModify: 'orders'}"),
            own("purge", "{delete: 'orders'}"),
            own("report", "{aggregate: 'orders', pipeline: [{$merge: 'daily'}]}"),
        ];
        let operations = plan.counted_operations();
        let found: Vec<_> = operations.iter().map(|one| (one.name.as_str(), one.effect)).collect();
        let expected = [
            ("orders of a customer", Effect::Read),
            ("insert", Effect::Insert),
            ("pay", Effect::Update),
            ("purge", Effect::Delete),
            ("report", Effect::Update),
            (INSERT_BATCH, Effect::Insert),
        ];
        assert_eq!(found, expected);
        plan.client.batch = 1;
        assert_eq!(plan.counted_operations().len(), 5, "the load counts under the same name");
    }
}
