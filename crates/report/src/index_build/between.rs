//! Findings about index builds on several configurations, and about the cost of tracing.

use super::configurations::{Row, Server, base_of};
use super::findings::{RANDOM_SCORE, changed, jumps, number, score};
use super::words::{Change, short_hash, took};
use dyno_analyze::tracing_cost::{Doubt, tracing_cost};
use dyno_record::experiment::{Finding, FindingKind};
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Findings about the configurations, the most important first.
pub(super) fn findings(document: &IndexBuildDocument, rows: &[Row<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(different_documents(document));
    let remedies = document.configurations.iter();
    let remedies = remedies.filter_map(|configuration| configuration.remedy.as_ref());
    found.extend(remedies.filter_map(changed));
    found.extend(rows.iter().filter_map(|row| compared(row, base_of(row, rows)?)));
    found.extend(rows.iter().filter_map(|row| random(document, row)));
    found
}

/// The finding that a configuration held different documents from the first one.
fn different_documents(document: &IndexBuildDocument) -> Option<Finding> {
    let (first, others) = document.configurations.split_first()?;
    let hash = |of: &str| short_hash(of);
    let is_other = |other: &&dyno_record::index_build::ConfigurationRecord| {
        other.collection.content_hash != first.collection.content_hash
            || other.collection.documents != first.collection.documents
    };
    let other = others.iter().find(is_other)?;
    let said = statement!(
        "configurations-differ-in-documents",
        base = &first.topology,
        configuration = &other.topology
    );
    let evidence = statement!(
        "documents-of-configurations",
        base_documents = first.collection.documents,
        base_hash = hash(&first.collection.content_hash),
        documents = other.collection.documents,
        hash = hash(&other.collection.content_hash)
    );
    Some(Finding::warning(said, vec![evidence]))
}

/// A comparison of a build with its base.
fn compared(row: &Row<'_>, base: &Row<'_>) -> Option<Finding> {
    let (base_s, seconds) = (base.build.duration_s, row.build.duration_s);
    let change = Change::between(base.build, row.build)?;
    let remedy = row.configuration.remedy.as_ref().filter(|_| row.is_after);
    let said = statement!(
        "configuration-took",
        name = row.name(),
        base = base.name(),
        seconds = number(took(seconds)),
        base_seconds = number(took(base_s)),
        is_same = change == Change::Same,
        is_unclear = change == Change::Unclear,
        change = change.statement(),
        is_identical = remedy.is_some_and(|remedy| remedy.is_identical())
    );
    let kind = match change {
        Change::Slower(_) => FindingKind::Warning,
        _ => FindingKind::Finding,
    };
    let evidence = [base, row].into_iter().map(took_and_read).collect();
    Some(Finding::new(kind, said, evidence))
}

/// The times when the first and the last server ended, and their reads in total and per second.
fn took_and_read(row: &Row<'_>) -> Statement {
    let build = row.build;
    let durations = build.members.iter().map(|one| one.duration_s);
    let first_s = durations.min_by(f64::total_cmp).filter(|_| row.has_own_commands());
    let per_s = |reads: u64| Number::new(reads as f64 / build.duration_s, Unit::PerSecond);
    statement!(
        "configuration-took-and-read",
        name = row.name(),
        servers = row.servers.len(),
        first = first_s.map(|seconds| number(took(seconds))),
        last = number(took(build.duration_s)),
        reads = build.process.map(|io| io.reads),
        per_s = build.process.map(|io| per_s(io.reads)),
        device_per_s = build.device.map(|io| per_s(io.reads))
    )
}

/// The finding about servers with different scan and file orders.
fn random(document: &IndexBuildDocument, row: &Row<'_>) -> Option<Finding> {
    let is_random = |server: &&Server<'_>| server.score().is_some_and(|one| one < RANDOM_SCORE);
    let servers: Vec<&Server<'_>> = row.servers.iter().filter(is_random).collect();
    if servers.is_empty() {
        return None;
    }
    let asked = document.recorded_plan().index_build;
    let is_asked = asked.is_some_and(|asked| asked.remedy.is_some());
    // The collection of a cluster is not rewritten.
    let can_be_mended = !is_asked && !row.configuration.topology.starts_with("sharded=");
    let said = statement!(
        "servers-read-at-random",
        name = row.name(),
        random = servers.len(),
        servers = row.servers.len(),
        are_several = row.servers.len() > 1,
        namespace = &document.collection.namespace,
        can_be_mended = can_be_mended
    );
    let evidence = servers.into_iter().filter_map(|server| {
        let (file, value) = (server.file?, server.score()?);
        Some(statement!(
            "order-of-server",
            server = &server.facts.name,
            score = score(value),
            jumps = jumps(file, value).into_iter().skip(1).collect::<Vec<_>>()
        ))
    });
    let kind = match can_be_mended {
        true => FindingKind::Opportunity,
        false => FindingKind::Finding,
    };
    Some(Finding::new(kind, said, evidence.collect()))
}

/// The cost of tracing over all builds.
pub(super) fn cost(document: &IndexBuildDocument) -> Option<Finding> {
    let pairs = || document.builds.iter().flat_map(|build| &build.tracing);
    let cost = tracing_cost(pairs())?;
    let ratio = |value: f64| number(Quantity::ratio(value));
    let interval = super::figures::narrow(&cost);
    let low = interval.map(|(low, _)| ratio(low));
    let high = interval.map(|(_, high)| ratio(high));
    let said = match cost.caveat() {
        None => statement!(
            "cost-of-tracing",
            ratio = ratio(cost.ratio),
            low = low,
            high = high,
            pairs = cost.pairs
        ),
        Some(caveat) => statement!(
            "cost-of-tracing-unknown",
            is_shorter = caveat == Doubt::Shorter,
            low = low,
            high = high,
            pairs = cost.pairs
        ),
    };
    let evidence = document.builds.iter().filter_map(|build| {
        let n = build.tracing.len();
        let mean = |of: fn(&dyno_record::index_build::TracingPair) -> f64| {
            number(took(build.tracing.iter().map(of).sum::<f64>() / n as f64))
        };
        (n > 0).then(|| {
            statement!(
                "with-and-without-trace",
                build = &build.name,
                pairs = (n > 1).then_some(n),
                traced = mean(|pair| pair.traced_s),
                untraced = mean(|pair| pair.untraced_s)
            )
        })
    });
    Some(Finding::found(said, evidence.collect()))
}
