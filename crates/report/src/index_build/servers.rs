//! The servers of every build, with their documents and read order, for tables in other programs.

use super::configurations::{Row, rows};
use super::sides::{Side, has_pattern, sides};
use super::view::IndexBuildView;
use dyno_analyze::access_pattern::FilePattern;
use dyno_record::index_build::{CollectionFacts, IndexBuildDocument, RemedyRecord};

/// The servers and documents of a build.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltOn {
    pub build: String,
    /// The topology; absent for an experiment on a single or an already running server.
    pub configuration: Option<String>,
    /// The documents of all servers.
    pub collection: CollectionFacts,
    /// The remedy applied before this build; absent for the build before it.
    pub remedy: Option<RemedyRecord>,
    pub servers: Vec<ServerInBuild>,
}

/// A server in a build.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerInBuild {
    /// `server` if it is the only one, otherwise `split-0`, `member-0`, `shard-0-0` and so on.
    pub name: String,
    /// Number of its documents.
    pub documents: u64,
    /// Size of its documents as BSON, in bytes.
    pub bytes: u64,
    /// Its documents as a share of all, 0 to 1; members of a set have the same documents. Absent without documents.
    pub share_ratio: Option<f64>,
    /// Read order of the file with the documents, from 0 (random) to 1 (in order). Absent without a trace, or with too few
    /// reads for a pattern.
    pub score: Option<f64>,
    /// Share of the reads of that file that continue a previous read, 0 to 1.
    pub sequential_ratio: Option<f64>,
    /// Bytes read from that file as a multiple of its size.
    pub amplification: Option<f64>,
}

impl ServerInBuild {
    fn new(
        name: &str,
        (documents, bytes): (u64, u64),
        all: &CollectionFacts,
        file: Option<&FilePattern>,
    ) -> Self {
        let share = documents as f64 / all.documents as f64;
        ServerInBuild {
            name: name.to_owned(),
            documents,
            bytes,
            share_ratio: (all.documents > 0).then_some(share),
            score: file.filter(|file| has_pattern(file)).and_then(|file| file.score),
            sequential_ratio: file.and_then(|file| file.sequential_ratio),
            amplification: file.and_then(|file| file.amplification),
        }
    }
}

/// The builds that ended, in order.
pub fn built_on(view: &IndexBuildView<'_>) -> Vec<BuiltOn> {
    let sides = sides(view);
    let rows = rows(view.document, &sides);
    if rows.is_empty() {
        let built = sides.iter().filter(|side| side.build.is_some());
        let built = built.enumerate();
        return built
            .map(|(number, side)| on_one_server(view.document, side, number > 0))
            .collect();
    }
    rows.iter().map(of_row).collect()
}

fn of_row(row: &Row<'_>) -> BuiltOn {
    let collection = &row.configuration.collection;
    let servers = row.servers.iter().map(|server| {
        let facts = server.facts;
        let documents = (facts.documents, facts.bytes);
        ServerInBuild::new(&facts.name, documents, collection, server.file)
    });
    let remedy = row.configuration.remedy.clone();
    BuiltOn {
        build: row.build.name.clone(),
        configuration: Some(row.configuration.topology.clone()),
        collection: collection.clone(),
        remedy: remedy.filter(|_| row.is_after),
        servers: servers.collect(),
    }
}

fn on_one_server(document: &IndexBuildDocument, side: &Side<'_>, is_after: bool) -> BuiltOn {
    let collection = &document.collection;
    let documents = (collection.documents, collection.bytes);
    BuiltOn {
        build: side.name.to_owned(),
        configuration: None,
        collection: collection.clone(),
        remedy: document.remedy.clone().filter(|_| is_after),
        servers: vec![ServerInBuild::new("server", documents, collection, side.file)],
    }
}
