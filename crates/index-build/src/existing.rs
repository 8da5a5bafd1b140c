//! Checks an existing collection for an index build.

use crate::build::{self, INDEX};
use crate::layout::{Collection, LayoutError};
use dyno_engine::{Error, refuse};
use dyno_load::connect::Control;
use dyno_plan::index_build::IndexBuildPlan;

/// Refuses a collection that already has the index, or on which the planned remedy cannot begin.
pub(crate) fn check(
    control: &mut Control,
    collection: &Collection,
    plan: &IndexBuildPlan,
) -> Result<(), Error> {
    let shape = match plan.remedy {
        // Before an index is built in vain.
        Some(_) => crate::layout::check(control, collection)?,
        None => collection.shape(control)?.ok_or_else(|| {
            Error::from(LayoutError::Missing { namespace: collection.namespace() })
        })?,
    };
    let is_ours = |index: &bson::Document| index.get_str("name").is_ok_and(|name| name == INDEX);
    if shape.indexes.iter().any(is_ours) {
        let text =
            format!("`{}` has the index `{INDEX}` of a killed index build", collection.namespace());
        let hint =
            format!("drop it: `db.getCollection(\"{}\").dropIndex(\"{INDEX}\")`", collection.name);
        return refuse(text, hint);
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
    let text =
        format!("`{}` already has an index on these fields: `{name}`", collection.namespace());
    refuse(text, "choose other fields with `--keys`")
}

/// Whether fields, order and directions are equal, regardless of numeric type.
fn same_keys(one: &bson::Document, other: &bson::Document) -> bool {
    let plain = |document: &bson::Document| -> Vec<(String, Option<f64>)> {
        let number = |value: &bson::Bson| match value {
            bson::Bson::Int32(number) => Some(f64::from(*number)),
            bson::Bson::Int64(number) => Some(*number as f64),
            bson::Bson::Double(number) => Some(*number),
            _ => None,
        };
        document.iter().map(|(name, value)| (name.clone(), number(value))).collect()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn index_keys_match_regardless_of_numeric_type() {
        assert!(same_keys(&doc! { "a": 1, "b": -1 }, &doc! { "a": 1.0, "b": -1_i64 }));
        assert!(!same_keys(&doc! { "a": 1, "b": -1 }, &doc! { "b": -1, "a": 1 }));
        assert!(!same_keys(&doc! { "a": 1 }, &doc! { "a": "hashed" }));
        assert!(!same_keys(&doc! { "a": 1 }, &doc! { "a": -1 }));
    }
}
