//! Roles of server files: reported by the server if possible, otherwise recognized by name.

use bson::{Document, doc};
use dyno_load::connect::{Control, ControlError};
use dyno_record::io_trace::document::{FileEntry, FileKind, FileRole};
use std::collections::BTreeMap;

/// Most collections to query: a server with more would take minutes to answer.
const MOST_COLLECTIONS: usize = 500;

/// Roles of table files, by the name that the server gives them, without folder and extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables(BTreeMap<String, FileRole>);

impl Tables {
    /// Queries a server for the tables of all its collections. Empty if the server does not report
    /// them.
    pub fn ask(control: &mut Control) -> Result<Tables, ControlError> {
        let mut tables = Tables::default();
        let command = doc! { "listDatabases": 1, "nameOnly": true };
        let answer = control.run("admin", for_reads(control, command))?;
        let mut left = MOST_COLLECTIONS;
        for database in names(&answer, "databases") {
            let command =
                doc! { "listCollections": 1, "nameOnly": true, "cursor": { "batchSize": 10_000 } };
            let Ok(answer) = control.run(&database, for_reads(control, command)) else {
                continue;
            };
            let cursor = answer.get_document("cursor").cloned().unwrap_or_default();
            for collection in names(&cursor, "firstBatch") {
                if left == 0 {
                    return Ok(tables);
                }
                left -= 1;
                // Views have no statistics; an error of one collection must not hide the others.
                let command = doc! { "collStats": &collection };
                if let Ok(statistics) = control.run(&database, command) {
                    tables.add(&format!("{database}.{collection}"), &statistics);
                }
            }
        }
        Ok(tables)
    }

    /// Adds the tables of another server.
    pub fn join(&mut self, other: Tables) {
        self.0.extend(other.0);
    }

    /// Adds the tables in the statistics of one collection.
    fn add(&mut self, namespace: &str, statistics: &Document) {
        let uri = |of: Option<&Document>| {
            let text = of?.get_str("uri").ok()?;
            text.rsplit_once("table:").map(|(_, table)| table.to_owned())
        };
        let whole = |name: &str| statistics.get_document(name).ok();
        if let Some(table) = uri(whole("wiredTiger")) {
            let role = role(FileKind::Collection, Some(namespace), None);
            self.0.insert(table, role);
        }
        for (index, details) in whole("indexDetails").into_iter().flatten() {
            if let Some(table) = uri(details.as_document()) {
                let role = role(FileKind::Index, Some(namespace), Some(index));
                self.0.insert(table, role);
            }
        }
    }

    /// Sets the known roles of files.
    pub fn name(&self, files: &mut [FileEntry]) {
        for file in files {
            let found = self.of(&file.name).or_else(|| by_name(&file.name));
            if found.is_some() {
                file.role = found;
            }
        }
    }

    /// With one folder per database, table names include it.
    fn of(&self, path: &str) -> Option<FileRole> {
        let table = path.strip_suffix(".wt")?;
        let is_end = |name: &&String| {
            table
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        self.0.keys().find(is_end).and_then(|name| self.0.get(name)).cloned()
    }
}

/// Allows a read command on a secondary, which otherwise refuses it.
fn for_reads(control: &Control, mut command: Document) -> Document {
    if control.hello().secondary {
        command.insert("$readPreference", doc! { "mode": "secondaryPreferred" });
    }
    command
}

/// Values of `name` in a list of documents.
fn names(answer: &Document, list: &str) -> Vec<String> {
    let items = answer.get_array(list).map(Vec::as_slice).unwrap_or_default();
    let name = |item: &bson::Bson| item.as_document()?.get_str("name").ok().map(str::to_owned);
    items.iter().filter_map(name).collect()
}

fn role(kind: FileKind, namespace: Option<&str>, index: Option<&str>) -> FileRole {
    FileRole {
        kind,
        namespace: namespace.map(str::to_owned),
        index: index.map(str::to_owned),
        words: None,
    }
}

/// Roles known by file name: WiredTiger's own files, and the tables that the embedded server shares
/// between all collections.
pub fn by_name(path: &str) -> Option<FileRole> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let with_words =
        |kind, words: &str| FileRole { words: Some(words.to_owned()), ..role(kind, None, None) };
    if name.starts_with("WiredTigerLog.") || name.starts_with("WiredTigerPreplog.") {
        return Some(with_words(FileKind::Journal, "write-ahead log of WiredTiger"));
    }
    if path.contains("/diagnostic.data/metrics.") {
        return Some(with_words(FileKind::Other, "diagnostic data of the server (FTDC)"));
    }
    let table = name.strip_suffix(".wt")?;
    Some(match table {
        "WiredTigerHS" => {
            with_words(FileKind::Other, "older versions of documents and index entries")
        }
        "WiredTiger" => with_words(FileKind::Other, "metadata of WiredTiger"),
        "_mdb_catalog" => with_words(FileKind::Other, "catalogue of collections and indexes"),
        "sizeStorer" => with_words(FileKind::Other, "counts and sizes of collections"),
        _ if table.starts_with("secantus_documents") => {
            with_words(FileKind::Collection, "documents of all collections")
        }
        "secantus_index_entries" => with_words(FileKind::Index, "entries of all indexes"),
        "secantus_unique_keys" => with_words(FileKind::Index, "entries of all unique indexes"),
        _ if table.starts_with("secantus_natural") => {
            with_words(FileKind::Index, "order in which documents were inserted")
        }
        _ if table.starts_with("secantus_oplog") || table == "secantus_preimages" => {
            with_words(FileKind::Journal, "log of changes for replication")
        }
        _ if table.starts_with("secantus_") => {
            with_words(FileKind::Other, "metadata of the server")
        }
        _ if table.starts_with("collection-") => with_words(FileKind::Collection, "a collection"),
        _ if table.starts_with("index-") => with_words(FileKind::Index, "an index"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> FileEntry {
        FileEntry {
            device_major: 8,
            device_minor: 1,
            inode: 7,
            generation: None,
            name: name.to_owned(),
            names: Vec::new(),
            deleted: false,
            bytes: None,
            role: None,
        }
    }

    fn shop() -> Tables {
        let mut tables = Tables::default();
        let statistics = doc! {
            "wiredTiger": { "uri": "statistics:table:collection-7-123" },
            "indexDetails": { "_id_": { "uri": "statistics:table:index-8-123" }, "odd": 3 },
        };
        tables.add("shop.orders", &statistics);
        tables
    }

    #[test]
    fn file_roles_come_from_the_server() {
        let mut files = [file("/data/collection-7-123.wt"), file("/data/index-8-123.wt")];
        shop().name(&mut files);
        let collection = files[0].role.as_ref().expect("it is reported");
        assert_eq!(collection.namespace.as_deref(), Some("shop.orders"));
        assert_eq!(collection.kind, FileKind::Collection);
        let index = files[1].role.as_ref().expect("it is reported");
        assert_eq!((index.kind, index.index.as_deref()), (FileKind::Index, Some("_id_")));
    }

    #[test]
    fn database_folder_is_part_of_the_table_name() {
        let mut tables = Tables::default();
        let statistics = doc! { "wiredTiger": { "uri": "statistics:table:shop/collection/7-123" } };
        tables.add("shop.orders", &statistics);
        assert!(tables.of("/data/shop/collection/7-123.wt").is_some());
        assert_eq!(tables.of("/data/workshop/collection/7-123.wt"), None);
        assert_eq!(shop().of("/data/xcollection-7-123.wt"), None);
    }

    #[test]
    fn file_roles_come_from_names_when_the_server_reports_none() {
        let mut tables = Tables::default();
        tables.add("shop.orders", &doc! { "count": 3, "wiredTiger": {} });
        assert_eq!(tables, Tables::default());
        let kind = |name: &str| by_name(name).map(|role| role.kind);
        assert_eq!(kind("/d/secantus_documents_sh3.wt"), Some(FileKind::Collection));
        assert_eq!(kind("/d/secantus_index_entries.wt"), Some(FileKind::Index));
        assert_eq!(kind("/d/journal/WiredTigerLog.0000000001"), Some(FileKind::Journal));
        assert_eq!(kind("/d/WiredTigerHS.wt"), Some(FileKind::Other));
        assert_eq!(kind("/var/lib/thing.db"), None);
    }
}
