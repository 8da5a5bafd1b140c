//! Range reads along secondary indexes, by values instead of keys.

use super::{CommandError, CommandOptions, CommandSet, begin, end_of_document, finish_body};
use crate::bson::{begin_document, binary_header, end_document};
use crate::command::options::write_read_options;

/// The find command along one index, after its filter.
#[derive(Clone, Debug)]
pub(super) struct IndexScan {
    /// Name of the index's first field, preceded by its type, a document.
    first_field: Vec<u8>,
    end: Vec<u8>,
}

impl IndexScan {
    pub(super) fn all(options: &CommandOptions) -> Result<Vec<Self>, CommandError> {
        let of_fields = |fields: &Vec<String>| IndexScan::new(options, fields);
        options.indexes.iter().map(of_fields).collect()
    }

    fn new(options: &CommandOptions, fields: &[String]) -> Result<Self, CommandError> {
        let first = fields.first().map_or("", String::as_str);
        if !options.field_names.iter().any(|name| name == first) {
            return Err(CommandError::Index(fields.join(",")));
        }
        let end = end_of_document(|writer| {
            // Name the index, so that the server cannot choose another.
            for element in ["sort", "hint"] {
                writer.document(element, |keys| {
                    for field in fields {
                        keys.i32(field, 1);
                    }
                });
            }
            // Project only the index's fields, so that no document is fetched.
            writer.document("projection", |projection| {
                for field in fields {
                    projection.i32(field, 1);
                }
                if fields.iter().all(|field| field != "_id") {
                    projection.i32("_id", 0);
                }
            });
            write_read_options(writer, options);
            writer.string("$db", &options.database);
        });
        Ok(IndexScan { first_field: [b"\x03", first.as_bytes(), b"\0"].concat(), end })
    }
}

impl CommandSet {
    /// Finds up to `limit` entries of an index, in its order, starting at the first one whose first field is at least
    /// the binary value that `fill` writes. Only the fields of the index are returned. Like [`scan`](Self::scan), it
    /// sends no batch size.
    ///
    /// # Panics
    /// If `index` is not an index of [`CommandOptions::indexes`].
    pub fn scan_index(
        &self,
        out: &mut Vec<u8>,
        request_id: i32,
        index: usize,
        limit: u32,
        value_bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let scan = &self.index_scans[index];
        let start = begin(out, &self.find, request_id);
        out.extend_from_slice(b"\x03filter\0");
        let filter = begin_document(out);
        out.extend_from_slice(&scan.first_field);
        let range = begin_document(out);
        out.extend_from_slice(b"\x05$gte\0");
        binary_header(out, value_bytes);
        let value = out.len();
        out.resize(value + value_bytes, 0);
        fill(&mut out[value..]);
        end_document(out, range);
        end_document(out, filter);
        out.extend_from_slice(b"\x10limit\0");
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        out.extend_from_slice(&limit.to_le_bytes());
        out.extend_from_slice(&scan.end);
        finish_body(out, start);
    }
}
