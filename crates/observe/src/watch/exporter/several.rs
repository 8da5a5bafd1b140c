//! Detects texts about several machines or servers. Federations, aggregators and gateways serve
//! several, distinguished by labels that the readers of this folder ignore: read together, they
//! would become one machine that does not exist.

use super::mongodb::{OF_MEMBERS, Scraped};
use super::text::{Sample, Scrape};
use std::collections::{HashMap, HashSet};

/// Labels of parts of one machine in the metrics of `node_exporter` that are read here.
#[rustfmt::skip]
const OF_PARTS: [&str; 10] =
    ["cpu", "mode", "device", "device_error", "fstype", "mountpoint", "chip", "sensor", "type", "zone"];

/// Labels that distinguish servers.
const OF_SERVERS: [&str; 4] = ["instance", "job", "cl_id", "rs_nm"];

/// Why the samples of `node_exporter` are from several machines; `None` if they are from one.
/// `is_read` selects the metrics that are read.
pub(super) fn machines(scrape: &Scrape<'_>, is_read: impl Fn(&str) -> bool) -> Option<String> {
    let known = || scrape.samples.iter().filter(|one| is_read(one.name));
    let what = different_label(known(), |name| !OF_PARTS.contains(&name)).or_else(|| {
        let mut seen = HashSet::new();
        twice(known(), |sample| {
            let part = OF_PARTS.map(|name| sample.label(name).unwrap_or_default());
            seen.insert((sample.name, part))
        })
    })?;
    Some(in_words("machines", &what))
}

/// Why the numbers of `serverStatus` and of members are from several servers; `None` if they are
/// from one.
pub(super) fn servers(scrape: &Scrape<'_>, of_server: &Scraped) -> Option<String> {
    let mut places: Vec<usize> = of_server.places.iter().copied().collect();
    places.sort_unstable();
    let at = |place: usize| scrape.samples.get(place);
    let of_members = || OF_MEMBERS.iter().flat_map(|name| scrape.named(name));
    let all = places.into_iter().filter_map(at).chain(of_members());
    let what = different_label(all, |name| OF_SERVERS.contains(&name))
        .or_else(|| of_server.twice.and_then(at).map(has_twice))
        .or_else(|| {
            let mut seen = HashSet::new();
            twice(of_members(), |sample| seen.insert((sample.name, sample.label("member_idx"))))
        })?;
    Some(in_words("servers", &what))
}

/// The first of these labels that has two values among the samples.
fn different_label<'s, 'a: 's>(
    samples: impl Iterator<Item = &'s Sample<'a>>,
    is_compared: impl Fn(&str) -> bool,
) -> Option<String> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    for sample in samples {
        for (name, value) in sample.labels.iter().filter(|(name, _)| is_compared(name)) {
            let known = *first.entry(name).or_insert(value);
            if known != value {
                return Some(format!("`{name}` is `{known}` and `{value}`"));
            }
        }
    }
    None
}

fn twice<'s, 'a: 's>(
    mut samples: impl Iterator<Item = &'s Sample<'a>>,
    mut is_new: impl FnMut(&'s Sample<'a>) -> bool,
) -> Option<String> {
    samples.find(|sample| !is_new(sample)).map(has_twice)
}

fn has_twice(sample: &Sample<'_>) -> String {
    format!("`{}` has two values with the same labels", sample.name)
}

fn in_words(of: &str, what: &str) -> String {
    format!(
        "its values are from several {of}: {what}; select one in its address, as \
            `match[]={{instance=\"HOST:PORT\"}}` does at Prometheus, or read the exporter of each"
    )
}
