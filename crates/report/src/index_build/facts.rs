//! How an index build was done: the documents, the server, the disk, and the remedy.

use super::words::took;
use crate::facts::{Fact, number_at, server_of, settings_of, text_at};
use dyno_record::index_build::{CollectionFacts, DiskFacts, IndexBuildDocument, RemedyRecord};
use dyno_record::quantity::Quantity;
use serde_json::Value;

/// The facts; those that are not known are empty.
pub(super) fn facts(document: &IndexBuildDocument) -> Vec<Fact> {
    let (plan, collection) = (&document.plan, &document.collection);
    let known = |text: Option<String>| text.unwrap_or_default();
    let took_text = |seconds: Option<f64>| known(seconds.map(|seconds| took(seconds).to_string()));
    let seed = number_at(plan, "/client/seed").map(|seed| seed.to_string());
    vec![
        Fact::new("Index on", known(index(plan, collection))),
        Fact::new("Documents", documents(collection)),
        Fact::new("Content hash", collection.content_hash.clone()),
        Fact::new(
            "Layout",
            known(text_at(plan, "/index_build/layout").map(layout)),
        ),
        Fact::new("Time of loading", took_text(collection.load_s)),
        Fact::new("Seed", known(seed)),
        Fact::new("Server", server_of(&document.server)),
        Fact::new("Cache", setting(document, "cache")),
        Fact::new("Block compressor", setting(document, "block_compressor")),
        Fact::new(
            "Other settings",
            settings_of(&document.server, &["cache", "block_compressor"]),
        ),
        Fact::new("Disk", known(document.disk.as_ref().map(disk))),
        Fact::new("Remedy", known(document.remedy.as_ref().map(remedy))),
    ]
}

fn index(plan: &Value, collection: &CollectionFacts) -> Option<String> {
    let keys = text_at(plan, "/index_build/keys")?;
    Some(match collection.namespace.is_empty() {
        true => keys.to_owned(),
        false => format!("{keys} of {}", collection.namespace),
    })
}

fn documents(collection: &CollectionFacts) -> String {
    let count = Quantity::count(collection.documents);
    match collection.documents {
        // Nothing was counted if it failed before.
        0 if collection.content_hash.is_empty() => String::new(),
        0 => count.to_string(),
        documents => format!(
            "{count}, {} as BSON, {} each in the mean",
            Quantity::bytes(collection.bytes),
            Quantity::bytes(collection.bytes / documents)
        ),
    }
}

fn layout(name: &str) -> String {
    let how = match name {
        "existing" => "the collection was there",
        "ordered" => "loaded in the order of _id",
        "shuffled" => "loaded in an order in which neighbours of _id are far apart",
        "concurrent" => "loaded by 16 connections at once, each in shuffled order",
        "churned" => {
            "loaded in order, then grown by updates in shuffled order, with deletes in between"
        }
        _ => return name.to_owned(),
    };
    format!("{name}: {how}")
}

/// A setting as the server has it, or as it was started with.
fn setting(document: &IndexBuildDocument, name: &str) -> String {
    let server = &document.server;
    let planned = || {
        let pointer = format!("/server/{name}");
        text_at(&document.plan, &pointer).filter(|_| server.started)
    };
    let told = server.settings.get(name).map(String::as_str);
    told.or_else(planned).unwrap_or_default().to_owned()
}

fn disk(disk: &DiskFacts) -> String {
    let named: Vec<&str> = [&disk.device, &disk.file_system]
        .into_iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    let named = named.join(", ");
    let what = match (disk.made, named.is_empty()) {
        (true, true) => "a disk made for this, in a file on another one".to_owned(),
        (true, false) => format!("a disk made for this, in a file on another one ({named})"),
        (false, true) => "not known".to_owned(),
        (false, false) => named,
    };
    match disk.iops {
        Some(iops) => {
            let limit = Quantity::count(iops.into());
            let seeks = if disk.made { ": no real seeks" } else { "" };
            format!("{what}, limited to {limit} reads and {limit} writes per second{seeks}")
        }
        None => what,
    }
}

fn remedy(remedy: &RemedyRecord) -> String {
    let how = match remedy.kind.as_str() {
        "rewrite" => ": a copy in the order of _id took the place of the collection",
        "natural-copy" => ": a copy in the order of the server took the place of the collection",
        "dump" => ": dumped in the order of _id and restored",
        "compact" => ": compacted in its place",
        _ => "",
    };
    let cache = remedy.cache_bytes.map_or(String::new(), |bytes| {
        format!(", by a server with a cache of {}", Quantity::bytes(bytes))
    });
    format!(
        "{}{how}, in {}{cache}",
        remedy.kind,
        took(remedy.duration_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_says_what_it_is_and_what_it_is_not() {
        let made = DiskFacts {
            device: "loop0".into(),
            file_system: "ext4".into(),
            made: true,
            iops: Some(200),
        };
        assert_eq!(
            disk(&made),
            "a disk made for this, in a file on another one (loop0, ext4), limited to 200 reads and 200 writes per second: no real seeks"
        );
        let real = DiskFacts {
            device: "vda1".into(),
            ..DiskFacts::default()
        };
        assert_eq!(disk(&real), "vda1");
        assert_eq!(disk(&DiskFacts::default()), "not known");
    }

    #[test]
    fn a_layout_that_is_not_known_keeps_its_name() {
        assert_eq!(layout("spiral"), "spiral");
    }
}
