//! Operations as commands on the wire, and the results in their replies.

use crate::generator::Operation;
use crate::operation::{Action, OperationError, Outcome};
use crate::workload::Workload;
use dyno_wire::code::DUPLICATE_KEY;
use dyno_wire::command::{DocumentWriter, FieldWriter, Form, Transaction};
use dyno_wire::reply::Reply;
use std::sync::Arc;

/// Writes the commands of one worker and reads their replies. Allocates nothing per operation.
pub(crate) struct Encoder {
    workload: Arc<Workload>,
    key: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(workload: Arc<Workload>) -> Self {
        Encoder { key: Vec::with_capacity(workload.longest_key_bytes()), workload }
    }

    /// Appends the command for `operation` to `out`; for a read-modify-write, its read. A write with a transaction can
    /// be sent again.
    pub(crate) fn encode(
        &mut self,
        operation: &Operation,
        request_id: i32,
        transaction: Option<&Transaction>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        if let (Some(own), Some(command)) = (&self.workload.own, &operation.command) {
            return own.encode(operation.action, command, request_id, transaction, out);
        }
        self.encode_with(operation, request_id, transaction.is_some(), out);
        if let Some(transaction) = transaction {
            let commands = &self.workload.retryable;
            commands.set_transaction(&mut out[start..], transaction);
        }
    }

    fn encode_with(
        &mut self,
        operation: &Operation,
        request_id: i32,
        is_retryable: bool,
        out: &mut Vec<u8>,
    ) {
        if operation.action == Action::InsertBatch {
            return self.encode_batch(operation, request_id, is_retryable, out);
        }
        self.write_key(operation.document);
        let workload = &*self.workload;
        let (commands, key) = (workload.commands(is_retryable), self.key.as_slice());
        let mut values = operation.values.clone();
        let mut fields = |writer: &mut FieldWriter<'_>| {
            for field in operation.fields.clone() {
                let value = writer.binary(field, workload.value_bytes(&mut values));
                workload.fill_value(key, field, &mut values, value);
            }
        };
        match operation.action {
            Action::Read => {
                commands.find_by_id(out, request_id, key, operation.projection);
            }
            Action::Scan => {
                let mut values = operation.values.clone();
                let Some((index, field)) = workload.draw_index(&mut values) else {
                    let (count, projection) = (operation.count, operation.projection);
                    return commands.scan(out, request_id, key, count, projection);
                };
                let length = workload.value_bytes(&mut values);
                let fill = |value: &mut [u8]| workload.fill_value(key, field, &mut values, value);
                commands.scan_index(out, request_id, index, operation.count, length, fill);
            }
            Action::Update => commands.update(out, request_id, key, fields),
            Action::Delete => commands.delete(out, request_id, key),
            Action::Insert if workload.access.upsert => {
                commands.replace_upsert(out, request_id, key, &mut fields);
            }
            Action::Insert | Action::InsertBatch | Action::Command { .. } => {
                commands.insert(out, request_id, key, &mut fields);
            }
        }
    }

    fn encode_batch(
        &mut self,
        operation: &Operation,
        request_id: i32,
        is_retryable: bool,
        out: &mut Vec<u8>,
    ) {
        let (workload, key) = (&*self.workload, &mut self.key);
        let mut values = operation.values.clone();
        let document = |index: usize, writer: &mut DocumentWriter<'_>| {
            key.clear();
            workload.write_key(operation.document + index as u64, key);
            let mut fields = writer.key(key);
            for field in operation.fields.clone() {
                let value = fields.binary(field, workload.value_bytes(&mut values));
                workload.fill_value(key, field, &mut values, value);
            }
        };
        let count = operation.count as usize;
        let commands = workload.commands(is_retryable);
        let form = if workload.access.upsert { Form::Upsert } else { Form::Insert };
        let held = commands.write_many(out, request_id, form, count, document);
        debug_assert_eq!(held, count, "a valid plan has batches that fit into a message");
    }

    /// Appends the command for the next batch of the cursor of `operation`.
    pub(crate) fn encode_get_more(
        &self,
        operation: &Operation,
        cursor_id: i64,
        request_id: i32,
        transaction: Option<&Transaction>,
        out: &mut Vec<u8>,
    ) {
        let action = operation.action;
        let is_own = self.workload.own.as_ref().is_some_and(|own| {
            own.encode_get_more(action, cursor_id, request_id, transaction, out)
        });
        if !is_own {
            self.workload.commands(false).get_more(out, request_id, cursor_id);
        }
    }

    /// Whether the operation is a transaction, and whether its command is the first one.
    #[inline]
    pub(crate) fn in_transaction(&self, operation: &Operation) -> (bool, bool) {
        let own = self.workload.own.as_ref().zip(operation.command.as_ref());
        own.map_or((false, false), |(own, command)| {
            let starts = own.starts_transaction(operation.action, command);
            (own.is_transaction(operation.action), starts)
        })
    }

    fn write_key(&mut self, document: u64) {
        self.key.clear();
        self.workload.write_key(document, &mut self.key);
    }

    /// Outcome of `operation` from the reply to its command.
    pub(crate) fn outcome(&mut self, operation: &Operation, reply: &Reply<'_>) -> Outcome {
        if !reply.ok {
            return Err(OperationError::refused(reply.code, reply.labels.overloaded));
        }
        match operation.action {
            Action::Read | Action::Scan => self.read_outcome(operation, reply),
            Action::Update | Action::Delete => write_outcome(reply, true),
            Action::Insert if self.workload.access.upsert => write_outcome(reply, false),
            Action::Insert | Action::InsertBatch => self.insert_outcome(operation, reply),
            Action::Command { .. } => own_outcome(reply),
        }
    }

    fn read_outcome(&mut self, operation: &Operation, reply: &Reply<'_>) -> Outcome {
        let Some(cursor) = &reply.cursor else {
            return Err(OperationError::Protocol);
        };
        if self.workload.data.integrity && operation.action != Action::Scan {
            self.write_key(operation.document);
            for document in cursor.documents() {
                self.workload.check(&self.key, document.as_bytes())?;
            }
        }
        // A scan after the last entry of an index finds nothing.
        let may_be_empty = || operation.action == Action::Scan && !self.workload.indexes.is_empty();
        if cursor.count == 0 && !may_be_empty() {
            Err(OperationError::NotFound)
        } else {
            Ok(cursor.count)
        }
    }

    /// Judges an insert by its errors. Existing documents are not failures if the load completes an earlier one, or if
    /// the insert was sent again because its answer was lost.
    fn insert_outcome(&self, operation: &Operation, reply: &Reply<'_>) -> Outcome {
        if (self.workload.keeps_existing() || operation.may_exist)
            && let Some(existing) = duplicates(reply)
        {
            if let Some(error) = &reply.write_concern_error {
                return Err(OperationError::WriteConcern(error.code));
            }
            // Use the failures instead of `n`, which some servers report incorrectly.
            return Ok(operation.count.saturating_sub(existing));
        }
        write_outcome(reply, false)
    }
}

/// Documents that a reply to an own command returns, or reports as changed.
pub(crate) fn own_outcome(reply: &Reply<'_>) -> Outcome {
    let written = write_outcome(reply, false)?;
    if let Some(cursor) = &reply.cursor {
        return Ok(cursor.count);
    }
    if written > 0 {
        return Ok(written);
    }
    let document = reply.document().map_err(|_| OperationError::Protocol)?;
    let part = |name: &str| document.find(name).ok().flatten()?.document().ok().flatten();
    // A `findAndModify` reports its change, and a `distinct` returns an array.
    if let Some(last) = part("lastErrorObject") {
        let n = last.find("n").ok().flatten().and_then(|n| n.number().ok().flatten());
        return Ok(n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0));
    }
    Ok(part("values").map_or(0, |values| values.elements().count() as u32))
}

/// Number of failed inserts in the reply; `None` if any failed for another reason than an existing document.
fn duplicates(reply: &Reply<'_>) -> Option<u32> {
    let document = reply.document().ok()?;
    let Ok(Some(errors)) = document.find("writeErrors") else {
        return Some(0);
    };
    let mut count = 0;
    for error in errors.document().ok()??.elements() {
        let code = error.ok()?.document().ok()??.find("code").ok()??;
        if code.number().ok()? != Some(i64::from(DUPLICATE_KEY)) {
            return None;
        }
        count += 1;
    }
    Some(count)
}

fn write_outcome(reply: &Reply<'_>, must_match: bool) -> Outcome {
    if let Some(error) = &reply.first_write_error {
        return Err(OperationError::Server(error.code));
    }
    if let Some(error) = &reply.write_concern_error {
        return Err(OperationError::WriteConcern(error.code));
    }
    match reply.n {
        0 if must_match => Err(OperationError::NotFound),
        n => Ok(u32::try_from(n).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;
    use crate::workload::{Concerns, LoadTask};

    /// The body of a reply with the given document.
    fn body(document: &bson::Document) -> Vec<u8> {
        let mut body = vec![0; 5];
        body.extend(document.to_vec().expect("it is a plain document"));
        body
    }

    #[test]
    fn a_repeated_insert_may_find_its_own_document() {
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        plan.data.records = 10;
        let task = LoadTask { first: 0, count: 10, batch: 1, keep_existing: false };
        let workload =
            Workload::load(&plan, task, &Concerns::default()).expect("the plan is sound");
        let workload = Arc::new(workload);
        let mut encoder = Encoder::new(Arc::clone(&workload));
        let mut insert = Generator::new(workload).next(0);
        let failure = |code: i32| {
            body(
                &bson::doc! { "ok": 1, "n": 0, "writeErrors": [{ "index": 0, "code": code, "errmsg": "" }] },
            )
        };
        let (duplicate, other) = (failure(DUPLICATE_KEY), failure(8000));
        let duplicate = dyno_wire::reply::read(&duplicate).expect("it is a reply");
        let other = dyno_wire::reply::read(&other).expect("it is a reply");
        assert_eq!(
            encoder.outcome(&insert, &duplicate),
            Err(OperationError::Server(DUPLICATE_KEY))
        );
        insert.may_exist = true;
        assert_eq!(encoder.outcome(&insert, &duplicate), Ok(0));
        assert_eq!(encoder.outcome(&insert, &other), Err(OperationError::Server(8000)));
    }
}
