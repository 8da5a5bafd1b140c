//! A collection that is there already, as it must be for an index build.

use crate::build::{self, INDEX};
use crate::layout::{Collection, LayoutError};
use dyno_engine::{Error, Kind};
use dyno_load::connect::Control;
use dyno_plan::index_build::IndexBuildPlan;

/// Refuses a collection that has the index already, or on which the remedy of the plan cannot begin.
pub(crate) fn check(
    control: &mut Control,
    collection: &Collection,
    plan: &IndexBuildPlan,
) -> Result<(), Error> {
    let shape = match plan.remedy {
        // Before an index was built for nothing.
        Some(_) => crate::layout::check(control, collection)?,
        None => collection.shape(control)?.ok_or_else(|| {
            Error::from(LayoutError::Missing {
                namespace: collection.namespace(),
            })
        })?,
    };
    let is_ours = |index: &bson::Document| index.get_str("name").is_ok_and(|name| name == INDEX);
    if shape.indexes.iter().any(is_ours) {
        let text = format!(
            "`{}` has the index `{INDEX}` of an index build that was killed",
            collection.namespace()
        );
        let hint = format!(
            "drop it: `db.getCollection(\"{}\").dropIndex(\"{INDEX}\")`",
            collection.name
        );
        return Err(Error::new(Kind::BadInput, text).with_hint(hint));
    }
    let keys = build::keys(plan);
    let is_there = |index: &&bson::Document| {
        let found = index.get_document("key");
        found.is_ok_and(|found| same_keys(found, &keys))
    };
    let Some(found) = shape.indexes.iter().find(is_there) else {
        return Ok(());
    };
    let name = found.get_str("name").unwrap_or_default();
    let text = format!(
        "`{}` already has an index on these fields: `{name}`",
        collection.namespace()
    );
    Err(Error::new(Kind::BadInput, text).with_hint("choose other fields with `--keys`"))
}

/// The same fields in the same order and direction, whatever type of number the directions have.
fn same_keys(one: &bson::Document, other: &bson::Document) -> bool {
    let plain = |document: &bson::Document| -> Vec<(String, Option<f64>)> {
        let number = |value: &bson::Bson| match value {
            bson::Bson::Int32(number) => Some(f64::from(*number)),
            bson::Bson::Int64(number) => Some(*number as f64),
            bson::Bson::Double(number) => Some(*number),
            _ => None,
        };
        let pairs = document.iter();
        pairs
            .map(|(name, value)| (name.clone(), number(value)))
            .collect()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn an_index_is_the_same_whatever_type_its_directions_have() {
        assert!(same_keys(
            &doc! { "a": 1, "b": -1 },
            &doc! { "a": 1.0, "b": -1_i64 }
        ));
        assert!(!same_keys(
            &doc! { "a": 1, "b": -1 },
            &doc! { "b": -1, "a": 1 }
        ));
        assert!(!same_keys(&doc! { "a": 1 }, &doc! { "a": "hashed" }));
        assert!(!same_keys(&doc! { "a": 1 }, &doc! { "a": -1 }));
    }
}
