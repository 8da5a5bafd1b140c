//! Method facts of an index build: documents, server, disk and remedy.

use super::words::took;
use crate::facts::{server_of, settings_of, setup as of_parts};
use crate::machine::in_short;
use crate::page::Fact;
use dyno_record::document::variant_name;
use dyno_record::index_build::{
    CollectionFacts, ConfigurationRecord, DiskFacts, IndexBuildDocument, RemedyRecord,
};
use dyno_record::quantity::Quantity;

/// Index, documents, server and machine.
pub(super) fn setup(document: &IndexBuildDocument) -> String {
    let (plan, collection) = (document.recorded_plan(), &document.collection);
    let keys = plan.index_build.as_ref().map(|build| index(build.keys.clone(), collection));
    let machine = document.environment.as_ref().map(in_short);
    of_parts([
        keys.map_or(String::new(), |keys| format!("index on {keys}")),
        format!("{} documents", Quantity::count(collection.documents)),
        server_of(&document.server),
        machine.unwrap_or_default(),
    ])
}

/// The facts; unknown ones are empty.
pub(super) fn facts(document: &IndexBuildDocument) -> Vec<Fact> {
    let (plan, collection) = (document.recorded_plan(), &document.collection);
    let (build, server) = (plan.index_build.as_ref(), plan.server.as_ref());
    let known = |text: Option<String>| text.unwrap_or_default();
    let took_text = |seconds: Option<f64>| known(seconds.map(|seconds| took(seconds).to_string()));
    let seed = plan.seed().map(|seed| seed.to_string());
    let cache = server.and_then(|server| Some(server.cache.as_ref()?.to_string()));
    let compressor = server.and_then(|server| server.block_compressor.clone());
    vec![
        Fact::new("Index on", known(build.map(|build| index(build.keys.clone(), collection)))),
        Fact::new("Documents", documents(collection)),
        Fact::new("Content hash", collection.content_hash.clone()),
        Fact::new("Layout", known(build.map(|build| layout(&variant_name(&build.layout))))),
        Fact::new("Time of loading", took_text(collection.load_s)),
        Fact::new("Seed", known(seed)),
        Fact::new("Server", server_of(&document.server)),
        Fact::new("Cache", setting(document, "cache", &cache)),
        Fact::new("Block compressor", setting(document, "block_compressor", &compressor)),
        Fact::new("Other settings", settings_of(&document.server, &["cache", "block_compressor"])),
        Fact::new("Disk", known(document.disk.as_ref().map(disk)) + of_each(document)),
        Fact::new("Remedy", known(document.remedy.as_ref().map(remedy))),
    ]
    .into_iter()
    .chain(document.configurations.iter().map(configuration))
    .collect()
}

/// The servers of a configuration, its documents, and its remedy.
fn configuration(one: &ConfigurationRecord) -> Fact {
    let mut value = match (one.members.len(), one.topology.starts_with("split=")) {
        (1, _) => "1 server".to_owned(),
        (n, true) => format!("{n} servers without a router"),
        (n, false) => format!("{n} servers with data"),
    };
    value += &format!(", {} documents", Quantity::count(one.collection.documents));
    if let Some(load_s) = one.collection.load_s {
        value += &format!(", loaded in {}", took(load_s));
    }
    if let Some(done) = &one.remedy {
        value += &format!("; {}", remedy(done));
        value += &done.on.as_ref().map_or(String::new(), |on| format!(", on {on} only"));
    }
    Fact::new(one.topology.clone(), value)
}

fn index(keys: String, collection: &CollectionFacts) -> String {
    if collection.namespace.is_empty() {
        keys
    } else {
        format!("{keys} of {}", collection.namespace)
    }
}

fn documents(collection: &CollectionFacts) -> String {
    let count = Quantity::count(collection.documents);
    match collection.documents {
        // Nothing was counted if it failed earlier.
        0 if collection.content_hash.is_empty() => String::new(),
        0 => count.to_string(),
        documents => format!(
            "{count}, {} as BSON, {} each on average",
            Quantity::bytes(collection.bytes),
            Quantity::bytes(collection.bytes / documents)
        ),
    }
}

fn layout(name: &str) -> String {
    let how = match name {
        "existing" => "existing collection",
        "ordered" => "loaded in the order of _id",
        "shuffled" => "loaded in an order in which neighbours of _id are far apart",
        "concurrent" => "loaded by 16 concurrent connections, each in shuffled order",
        "churned" => {
            "loaded in order, then grown by updates in shuffled order, with deletes in between"
        }
        "migrated" => {
            "half of them loaded in order, then the others in chunks, while the same number of unrelated documents was deleted"
        }
        _ => return name.to_owned(),
    };
    format!("{name}: {how}")
}

/// A setting as reported by the server, or else as started.
fn setting(document: &IndexBuildDocument, name: &str, planned: &Option<String>) -> String {
    let server = &document.server;
    let planned = planned.as_ref().filter(|_| server.started);
    let reported = server.settings.get(name);
    reported.or(planned).cloned().unwrap_or_default()
}

/// With several servers, storage is prepared for each.
fn of_each(document: &IndexBuildDocument) -> &'static str {
    let is_made = document.disk.as_ref().is_some_and(|disk| disk.made);
    let are_several = document.configurations.iter().any(|one| one.members.len() > 1);
    match is_made && are_several {
        true => "; with several servers, each has one of its own",
        false => "",
    }
}

fn disk(disk: &DiskFacts) -> String {
    let named: Vec<&str> = [&disk.device, &disk.file_system]
        .into_iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    let named = named.join(", ");
    let what = match (disk.made, named.is_empty()) {
        (true, true) => "a disk created for this, in a file on another one".to_owned(),
        (true, false) => format!("a disk created for this, in a file on another one ({named})"),
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
        "rewrite" => ": replaced by a copy in the order of _id",
        "natural-copy" => ": replaced by a copy in the order of the server",
        "dump" => ": dumped in the order of _id and restored",
        "compact" => ": compacted in place",
        _ => "",
    };
    let cache = remedy.cache_bytes.map_or(String::new(), |bytes| {
        format!(", by a server with a cache of {}", Quantity::bytes(bytes))
    });
    format!("{}{how}, in {}{cache}", remedy.kind, took(remedy.duration_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_is_described_by_device_and_limits() {
        let made = DiskFacts {
            device: "loop0".into(),
            file_system: "ext4".into(),
            made: true,
            iops: Some(200),
        };
        for part in ["(loop0, ext4)", "200 reads", "200 writes"] {
            assert!(disk(&made).contains(part), "{part}: {}", disk(&made));
        }
        let real = DiskFacts { device: "vda1".into(), ..DiskFacts::default() };
        assert_eq!(disk(&real), "vda1");
        assert_eq!(disk(&DiskFacts::default()), "not known");
    }

    #[test]
    fn unknown_layout_keeps_its_name() {
        assert_eq!(layout("spiral"), "spiral");
    }
}
