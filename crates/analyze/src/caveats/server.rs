//! Caveats about the server's work: how much data, from where, and how safely.

use super::facts::{Facts, of_measure};
use crate::costs::CHECKPOINT_INTERVAL_S;
use crate::values::{bytes, time};
use dyno_record::model::{Caveat, CaveatKind, Effect, RunDocument, ServerRecord};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// The number of documents differs from the plan's. No threshold applies: keys are drawn from exactly the
/// documents that the plan names.
pub(super) fn document_count(facts: &Facts<'_>) -> Option<Caveat> {
    let found = facts.document.server.documents?;
    let data = facts.plan.data.as_ref()?;
    let planned = data.planned_documents().saturating_mul(data_sets(facts.document));
    // A warm-up with inserts or deletes may have changed the number before it was read.
    // An own update may insert or delete as well.
    let may_be_both = !data.collections.is_empty() && facts.document.draws(Effect::Update);
    let may_be_more = facts.document.draws(Effect::Insert) || may_be_both;
    let may_be_fewer = facts.document.draws(Effect::Delete) || may_be_both;
    let differs = (found > planned && !may_be_more) || (found < planned && !may_be_fewer);
    let said = statement!("other-document-count", found = found, planned = planned);
    differs.then(|| Caveat::of_run(CaveatKind::DocumentCount, said))
}

/// Number of independent servers, each with the plan's data set.
fn data_sets(document: &RunDocument) -> u64 {
    // The servers of one deployment share a data set.
    let independent = document.fleet.as_ref().filter(|fleet| fleet.mapping != "deployment");
    let of_fleet = independent.map_or(0, |fleet| fleet.servers.len());
    document.instances.len().max(of_fleet).max(1) as u64
}

/// The data set fits into the server's cache: uncompressed data and cache are compared, because the cache holds
/// pages uncompressed. Indexes are ignored, so a set of nearly the cache's size may still be read from storage.
pub(super) fn fits_in_cache(facts: &Facts<'_>) -> Option<Caveat> {
    let server = &facts.document.server;
    let (data_bytes, cache_bytes) = (server.data_bytes?, server.cache_bytes?);
    let said = statement!(
        "data-fits-in-cache",
        data = bytes(data_bytes as f64),
        cache = bytes(cache_bytes as f64)
    );
    let fits = (1..=cache_bytes).contains(&data_bytes) && facts.measure.is_some();
    fits.then(|| of_measure(CaveatKind::FitsInCache, said))
}

/// The plan chooses a block compressor, but its data cannot show the effect: random bytes do not shrink, and the
/// cache holds pages uncompressed.
pub(super) fn compression(facts: &Facts<'_>) -> Option<Caveat> {
    facts.plan.server.as_ref()?.block_compressor.as_ref()?;
    let is_random = facts.plan.data.as_ref()?.compressible_ratio == 0.0;
    let is_cached = fits_in_cache(facts).is_some();
    let said = statement!(
        "compression-without-effect",
        is_random = is_random.then_some(true),
        is_cached = is_cached.then_some(true)
    );
    (is_random || is_cached).then(|| Caveat::of_run(CaveatKind::Compression, said))
}

/// Writes are acknowledged before they are durable. This is stated, not judged: it is a choice, but results
/// with different choices cannot be compared.
pub(super) fn durability(facts: &Facts<'_>) -> Option<Caveat> {
    let writes = [Effect::Update, Effect::Insert, Effect::Delete];
    if !writes.into_iter().any(|effect| facts.document.draws(effect)) {
        return None;
    }
    let server = &facts.document.server;
    let concern = &server.write_concern;
    let early = early_acknowledgement(facts);
    let unjournaled_s =
        unjournaled_checkpoint_s(server).filter(|_| early != Some(NOT_ACKNOWLEDGED));
    let statement = match unjournaled_s {
        Some(interval_s) => statement!(
            "writes-without-journal",
            interval = time(interval_s),
            write_concern = concern
        ),
        None => Statement::new(early?).with("write_concern", concern),
    };
    Some(Caveat::of_run(CaveatKind::Durability, statement))
}

/// Time between checkpoints of a server without a journal; `None` if it has one, or does not report it.
fn unjournaled_checkpoint_s(server: &ServerRecord) -> Option<f64> {
    let own = |name: &str| server.settings.get(name);
    let of_members = |name: &str| {
        let found = server.members.iter().find_map(|one| one.found.get(name));
        found.or_else(|| server.members.iter().find_map(|one| one.asked.get(name)))
    };
    let journal = of_members("journal")
        .or_else(|| own("journal"))
        .or_else(|| own("storage.journal.enabled"))?;
    let interval = of_members("checkpoint_interval_s").or_else(|| own("parameter.syncdelay"));
    let interval_s = interval.and_then(|interval| interval.parse().ok());
    (journal == "false").then(|| interval_s.unwrap_or(CHECKPOINT_INTERVAL_S))
}

const NOT_ACKNOWLEDGED: &str = "writes-not-acknowledged";

/// Code for writes that are acknowledged before they are on disk, if any.
fn early_acknowledgement(facts: &Facts<'_>) -> Option<&'static str> {
    let server = &facts.document.server;
    let concern: String = server
        .write_concern
        .to_lowercase()
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '{' | '}'))
        .map(|c| if c == ':' { '=' } else { c })
        .collect();
    let has = |setting: &str| concern.split([',', '&', ';']).any(|part| part == setting);
    if has("w=0") {
        return Some(NOT_ACKNOWLEDGED);
    }
    let is_durable = facts.plan.server.as_ref().is_some_and(|server| server.durable_writes);
    let waits_for_journal = has("j=true") || has("journal=true") || is_durable;
    let is_standalone = matches!(server.topology.as_deref(), Some("standalone") | None);
    // A majority in a replica set waits for the journal by default (`writeConcernMajorityJournalDefault`), and
    // it is the default write concern there.
    let is_majority = has("w=majority") || has("majority") || concern == "serverdefault";
    if waits_for_journal || (is_majority && !is_standalone) {
        return None;
    }
    Some("writes-not-durable")
}

/// Connection string options that disable a certificate check, including the names of old drivers.
const WEAKENS_TLS: [&str; 5] = [
    "tlsInsecure",
    "tlsAllowInvalidCertificates",
    "tlsAllowInvalidHostnames",
    "sslAllowInvalidCertificates",
    "sslInvalidHostNameAllowed",
];

/// TLS without verification of the certificate or of its name encrypts, but anyone on the network may have
/// answered.
pub(super) fn unverified_tls(facts: &Facts<'_>) -> Option<Caveat> {
    let (_, options) = facts.plan.server.as_ref()?.uri.as_deref()?.split_once('?')?;
    let given: Vec<String> = options
        .split('&')
        .filter_map(|option| option.split_once('='))
        .filter(|(_, value)| *value == "true")
        .filter_map(|(name, _)| WEAKENS_TLS.iter().find(|one| one.eq_ignore_ascii_case(name)))
        .map(|name| format!("`{name}`"))
        .collect();
    let number = given.len();
    let said = statement!("tls-not-verified", options = given, number = number);
    (number > 0).then(|| Caveat::of_run(CaveatKind::UnverifiedTls, said))
}
