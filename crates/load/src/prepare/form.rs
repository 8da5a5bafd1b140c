//! Forms of collections. Some cannot store the documents of a plan.

use super::{first_batch, number_at, optional};
use crate::connect::Control;
use crate::error::LoadError;
use bson::{Bson, Document, doc};
use dyno_plan::model::DataPlan;

/// Form of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CollectionForm {
    /// Keeps its documents.
    #[default]
    Ordinary,
    /// Drops its oldest documents.
    Capped {
        /// Maximum size of its documents.
        bytes: Option<u64>,
        /// Maximum number of documents.
        documents: Option<u64>,
    },
    /// Another form, by its name.
    Other(String),
}

impl CollectionForm {
    /// Form of an entry of `listCollections`.
    pub fn of(entry: &Document) -> Self {
        let options = entry.get_document("options").cloned().unwrap_or_default();
        match entry.get_str("type").unwrap_or("collection") {
            "collection" if options.get_bool("capped").unwrap_or(false) => CollectionForm::Capped {
                bytes: number_at(&options, &["size"]),
                documents: number_at(&options, &["max"]),
            },
            "collection" => CollectionForm::Ordinary,
            "timeseries" => CollectionForm::Other("time series collection".into()),
            kind => CollectionForm::Other(kind.into()),
        }
    }

    /// `view`, `capped collection` and the like; `None` for an ordinary collection.
    pub fn name(&self) -> Option<&str> {
        match self {
            CollectionForm::Ordinary => None,
            CollectionForm::Capped { .. } => Some("capped collection"),
            CollectionForm::Other(name) => Some(name),
        }
    }
}

/// The form of a collection, `None` if it does not exist; `Ordinary` if the server does not list its collections.
pub(super) fn form(
    control: &mut Control,
    data: &DataPlan,
) -> Result<Option<Option<CollectionForm>>, LoadError> {
    let name = &data.collection;
    let command = doc! { "listCollections": 1, "filter": { "name": name } };
    let reply = optional(control, &data.database, command, "list the collections")?;
    let batch = reply.as_ref().and_then(first_batch);
    Ok(batch.map(|batch| {
        // Not every server applies the filter.
        let entry = batch
            .iter()
            .filter_map(Bson::as_document)
            .find(|entry| entry.get_str("name").ok() == Some(name));
        entry.map(CollectionForm::of)
    }))
}

/// Name of an index whose documents expire, if the collection has one.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails.
pub fn expiring_index(control: &mut Control, data: &DataPlan) -> Result<Option<String>, LoadError> {
    let command = doc! { "listIndexes": &data.collection };
    let reply = optional(control, &data.database, command, "list the indexes")?;
    let index = reply
        .as_ref()
        .and_then(first_batch)
        .into_iter()
        .flatten()
        .filter_map(Bson::as_document)
        .find(|index| index.contains_key("expireAfterSeconds"));
    Ok(index.and_then(|index| index.get_str("name").ok().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_differ_by_type_and_options() {
        let capped = doc! { "capped": true, "size": 100_000, "max": 10_i64 };
        for (entry, name) in [
            (doc! { "type": "collection", "options": {} }, None),
            (doc! { "name": "of an old server" }, None),
            (doc! { "type": "collection", "options": &capped }, Some("capped collection")),
            (doc! { "type": "view", "options": {} }, Some("view")),
            (doc! { "type": "timeseries" }, Some("time series collection")),
        ] {
            assert_eq!(CollectionForm::of(&entry).name(), name, "{entry}");
        }
        let form = CollectionForm::of(&doc! { "options": capped });
        let expected = CollectionForm::Capped { bytes: Some(100_000), documents: Some(10) };
        assert_eq!(form, expected);
    }
}
