//! Decides what to do with the collection before a run: load it, complete it, use it unchanged, or
//! refuse it.

use crate::deployment::storage::planned_bytes;
use crate::error::{Error, Kind};
use dyno_load::connect::Control;
use dyno_load::prepare::{CollectionForm, CollectionState, check_shape, estimated_count, foreign};
use dyno_plan::Plan;
use dyno_record::model::DroppedCollection;

/// Required action before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The collection is complete.
    Ready,
    /// Load all documents of this client; the collection is empty.
    Load,
    /// Load the missing documents and keep the existing ones.
    Complete,
}

/// Documents that this client loads and works on.
pub fn own_documents(plan: &Plan) -> u64 {
    let data = &plan.data;
    data.insert_count.unwrap_or(data.records.saturating_sub(data.insert_start))
}

/// Decides, or fails with the difference between the collection and the plan.
pub(crate) fn decide(
    plan: &Plan,
    state: &CollectionState,
    no_load: bool,
) -> Result<Decision, Error> {
    let (found, planned) = (state.documents, plan.data.records);
    if found > planned {
        return Err(too_many(plan, found));
    }
    let own = own_documents(plan);
    // If this client loads a part of the data set, other clients load the rest.
    let complete = if own == planned { found == planned } else { has_own(state) && found >= own };
    let differences = check_shape(plan, &state.sample, complete);
    if !differences.is_empty() {
        return Err(other_shape(plan, &differences));
    }
    let decision = match (complete, found) {
        (true, _) => Decision::Ready,
        (false, _) if no_load => return Err(too_few(plan, state)),
        (false, 0) => Decision::Load,
        (false, _) => Decision::Complete,
    };
    check_form(plan, &state.form, decision)?;
    Ok(decision)
}

/// Refuses collections that cannot hold the documents or cannot be written.
fn check_form(plan: &Plan, form: &CollectionForm, decision: Decision) -> Result<(), Error> {
    let loads = decision != Decision::Ready;
    let records = plan.data.records;
    let is_unfit = match form {
        CollectionForm::Ordinary => false,
        CollectionForm::Other(_) => loads || plan.operations.has_writes(),
        CollectionForm::Capped { bytes, documents } => {
            let least = planned_bytes(&plan.data, records);
            let has_too_few = documents.is_some_and(|most| most < records);
            loads && (has_too_few || least.zip(*bytes).is_some_and(|(least, most)| most < least))
        }
    };
    match form.name() {
        Some(name) if is_unfit => {
            let namespace = namespace(plan);
            let message = match form {
                CollectionForm::Capped { .. } => format!(
                    "`{namespace}` is a {name}, which is too small for the {records} documents of the plan"
                ),
                _ => format!("`{namespace}` is a {name}, not an ordinary collection"),
            };
            Err(Error::new(Kind::Environment, message).with_hint(OTHER_COLLECTION))
        }
        _ => Ok(()),
    }
}

const OTHER_COLLECTION: &str = "use another collection with `-p table=NAME`";

/// Compares the collection with the acknowledged inserts, for a load that did not check it before.
pub(crate) fn check_acknowledged(
    plan: &Plan,
    state: &CollectionState,
    acknowledged: u64,
) -> Result<(), Error> {
    if state.documents >= acknowledged {
        return Ok(());
    }
    let message = format!(
        "{} holds {} documents, but the server acknowledged {acknowledged} in this load",
        described(plan, &state.form),
        state.documents
    );
    Err(Error::new(Kind::CheckFailed, message)
        .with_hint("the server or another client removed documents; use another collection with `-p table=NAME`"))
}

/// The collection, with its kind if it is not an ordinary one.
fn described(plan: &Plan, form: &CollectionForm) -> String {
    let namespace = namespace(plan);
    match form.name() {
        None => format!("the collection `{namespace}`"),
        Some(name) => format!("the {name} `{namespace}`"),
    }
}

/// Facts about a collection before it is dropped.
pub(crate) fn about_to_drop(
    control: &mut Control,
    plan: &Plan,
) -> Result<DroppedCollection, Error> {
    let foreign = foreign(control, &plan.data)?;
    Ok(DroppedCollection {
        namespace: namespace(plan),
        foreign_key: foreign.key,
        all_keys_checked: foreign.all_keys_checked,
        documents: estimated_count(control, &plan.data)?,
    })
}

/// Refuses to drop documents of other programs.
pub(crate) fn refuse_foreign(found: &DroppedCollection) -> Result<(), Error> {
    let Some(key) = &found.foreign_key else {
        return Ok(());
    };
    let message = format!(
        "the collection `{}` would be dropped, but not all of its {} documents belong to a benchmark: one has the key `{key}`",
        found.namespace, found.documents
    );
    Err(Error::new(Kind::Environment, message).with_hint(
        "use another collection with `-p table=NAME` or another database, or drop these documents with `--drop-foreign`",
    ))
}

/// Number of checked documents if the server does not compare all keys in time: the first, the last
/// and a hundred at random.
const CHECKED: u64 = 102;

/// A sentence about the dropped documents.
pub(crate) fn dropped_text(found: &DroppedCollection) -> String {
    let of_whom = match &found.foreign_key {
        Some(key) => format!(", including one of another program, with the key `{key}`"),
        None if found.all_keys_checked || found.documents <= CHECKED => String::new(),
        None => format!(", at most {CHECKED} of them checked"),
    };
    format!("dropped `{}`: {} documents{of_whom}", found.namespace, found.documents)
}

/// Refuses a collection that is incomplete after loading.
pub(crate) fn check_loaded(plan: &Plan, state: &CollectionState) -> Result<(), Error> {
    decide(plan, state, true).map(|_| ()).map_err(|failure| {
        // Loading was tried, so the usual hint would not help.
        let failure = match state.documents < plan.data.records {
            true => Error { hint: Some(OTHER_COLLECTION.to_owned()), ..failure },
            false => failure,
        };
        failure.context("the load phase ended, but the collection is not complete")
    })
}

fn has_own(state: &CollectionState) -> bool {
    state.sample.expected.iter().all(|(_, document)| document.is_some())
}

fn namespace(plan: &Plan) -> String {
    format!("{}.{}", plan.data.database, plan.data.collection)
}

fn too_many(plan: &Plan, found: u64) -> Error {
    let message = format!(
        "the collection `{}` holds {found} documents, the plan assumes {}",
        namespace(plan),
        plan.data.records
    );
    Error::new(Kind::Environment, message).with_hint(format!(
        "an earlier run may have inserted them; use all of them with `--records {found}`, another collection with `-p table=NAME`, or drop this one first with `--fresh`"
    ))
}

fn too_few(plan: &Plan, state: &CollectionState) -> Error {
    let found = state.documents;
    let message = format!(
        "{} holds {found} documents, the plan assumes {}",
        described(plan, &state.form),
        plan.data.records
    );
    let hint = match found {
        _ if state.form.name().is_some() => OTHER_COLLECTION.to_owned(),
        0 => "leave out `--no-load` to load them".to_owned(),
        _ => format!(
            "leave out `--no-load` to load the missing documents, or use the existing ones with `--records {found}`"
        ),
    };
    Error::new(Kind::Environment, message).with_hint(hint)
}

fn other_shape(plan: &Plan, differences: &[String]) -> Error {
    let message = format!(
        "the collection `{}` does not hold the documents of the plan: {}",
        namespace(plan),
        differences.join("; ")
    );
    Error::new(Kind::Environment, message)
        .with_hint("use another collection with `-p table=NAME`, change the plan's `data`, or drop this collection first with `--fresh`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Binary, Document, doc, spec::BinarySubtype};
    use dyno_load::prepare::Sample;

    fn plan() -> Plan {
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        plan.data.records = 10;
        plan.data.field_count = 1;
        plan
    }

    fn document(key: &str) -> Document {
        let value = Binary { subtype: BinarySubtype::Generic, bytes: vec![32; 100] };
        doc! { "_id": key, "field0": value }
    }

    fn state(documents: u64) -> CollectionState {
        let key = "user6284781860667377211";
        let sample = match documents {
            0 => Sample { ends: Vec::new(), expected: vec![(key.into(), None)] },
            _ => Sample {
                ends: vec![document(key)],
                expected: vec![(key.into(), Some(document(key)))],
            },
        };
        CollectionState { exists: documents > 0, documents, sample, ..CollectionState::default() }
    }

    const LOADS: bool = false;
    const LOADS_NOT: bool = true;

    #[test]
    fn an_empty_collection_is_loaded_and_a_part_is_completed() {
        assert_eq!(decide(&plan(), &state(0), LOADS).expect("it can be"), Decision::Load);
        assert_eq!(decide(&plan(), &state(4), LOADS).expect("it can be"), Decision::Complete);
        assert_eq!(decide(&plan(), &state(10), LOADS).expect("it can be"), Decision::Ready);
        assert_eq!(decide(&plan(), &state(10), LOADS_NOT).expect("it can be"), Decision::Ready);
    }

    #[test]
    fn more_documents_than_planned_are_refused_with_both_numbers() {
        let failure = decide(&plan(), &state(11), LOADS).expect_err("an earlier run inserted one");
        let text = failure.cause.to_string();
        assert!(text.contains("holds 11 documents") && text.contains("assumes 10"), "{text}");
        let hint = failure.hint.expect("there is a way out");
        assert!(hint.contains("--records 11") && hint.contains("--fresh"), "{hint}");
    }

    #[test]
    fn without_loading_missing_documents_are_refused() {
        for found in [0, 4] {
            let failure =
                decide(&plan(), &state(found), LOADS_NOT).expect_err("documents are missing");
            assert_eq!(failure.kind, Kind::Environment);
            assert!(failure.hint.expect("there is a way out").contains("--no-load"));
        }
    }

    #[test]
    fn documents_of_another_shape_are_refused_whatever_their_number() {
        let mut plan = plan();
        plan.data.field_count = 2;
        for found in [4, 10] {
            let failure = decide(&plan, &state(found), LOADS).expect_err("the shape differs");
            let text = failure.cause.to_string();
            assert!(text.contains("1 field") && text.contains('2'), "{text}");
        }
    }

    #[test]
    fn one_of_several_clients_needs_only_its_own_part() {
        let mut plan = plan();
        plan.data.insert_start = 5;
        plan.data.insert_count = Some(5);
        assert_eq!(decide(&plan, &state(5), LOADS).expect("its part is there"), Decision::Ready);
        let mut others = state(5);
        others.sample.expected[0].1 = None;
        assert_eq!(
            decide(&plan, &others, LOADS).expect("the others' part is there"),
            Decision::Complete
        );
    }

    fn capped(bytes: u64, documents: Option<u64>) -> CollectionForm {
        let bytes = Some(bytes);
        CollectionForm::Capped { bytes, documents }
    }

    fn with_form(documents: u64, form: CollectionForm) -> CollectionState {
        CollectionState { form, ..state(documents) }
    }

    #[test]
    fn views_and_small_capped_collections_are_not_loaded() {
        let view = || CollectionForm::Other("view".into());
        for (form, documents, name) in [
            (view(), 0, "view"),
            (view(), 4, "view"),
            (view(), 10, "view"),
            (capped(999, None), 4, "capped collection"),
            (capped(1 << 20, Some(9)), 0, "capped collection"),
        ] {
            let state = with_form(documents, form);
            let failure = decide(&plan(), &state, LOADS).expect_err(name);
            let text = failure.cause.to_string();
            assert!(text.contains(&format!("is a {name}")), "{text}");
            assert_eq!(failure.kind, Kind::Environment);
        }
    }

    #[test]
    fn views_are_read_and_large_capped_collections_are_loaded() {
        let mut reads = plan();
        (reads.operations.read, reads.operations.update) = (1.0, 0.0);
        let view = with_form(10, CollectionForm::Other("view".into()));
        assert_eq!(decide(&reads, &view, LOADS).expect("reads"), Decision::Ready);
        let large = with_form(0, capped(1 << 20, Some(10)));
        assert_eq!(decide(&plan(), &large, LOADS).expect("fits"), Decision::Load);
    }

    #[test]
    fn blind_load_fails_when_documents_are_missing() {
        let state = with_form(85, capped(100_000, None));
        assert!(check_acknowledged(&plan(), &state, 85).is_ok());
        let failure = check_acknowledged(&plan(), &state, 500).expect_err("415 are missing");
        assert_eq!(failure.kind, Kind::CheckFailed);
        let text = failure.cause.to_string();
        assert!(text.contains("capped collection"), "{text}");
        assert!(text.contains("85") && text.contains("500"), "{text}");
    }

    #[test]
    fn incomplete_load_is_an_error() {
        let failure = check_loaded(&plan(), &with_form(9, capped(1 << 20, None)))
            .expect_err("one is missing");
        assert!(failure.reason().contains("capped collection"));
        let hint = failure.hint.expect("there is a way out");
        assert!(!hint.contains("--no-load"), "{hint}");
        let failure = check_loaded(&plan(), &state(9)).expect_err("one is missing");
        assert!(failure.cause.to_string().contains("load phase"));
        assert!(check_loaded(&plan(), &state(10)).is_ok());
    }
}
