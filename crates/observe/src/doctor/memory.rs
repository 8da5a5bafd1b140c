//! Checks of memory: huge pages, swap, NUMA, mappings, and cache sizes.

use super::facts::{Facts, Product, ServerFacts};
use super::finding::{Finding, by_hand, judged, sysctl, unread, write_file};
use super::processes::MemoryPolicy;
use crate::health::Reading;
use dyno_record::quantity::Quantity;
use dyno_record::verdict::{Change, Level};

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
const PADDING: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none";
/// First major version of MongoDB whose allocator benefits from huge pages.
const WANTED_FROM: u64 = 8;

/// Which setting of transparent huge pages suits a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// MongoDB 8.0 and later: its TCMalloc keeps caches per CPU and lays memory out for huge pages.
    Always,
    /// MongoDB 7.0 and earlier.
    Never,
    /// Servers to which MongoDB's reasons do not apply. The embedded server allocates with
    /// mimalloc.
    NotForAll,
}

/// The suitable setting. The manual's page "TCMalloc Performance Optimization" exempts PowerPC and
/// s390x, where 8.0 still has the old allocator.
fn wish(server: Option<&ServerFacts>) -> Result<Wish, &'static str> {
    let Some(server) = server else {
        return Err("it depends on the server's version, which is unknown");
    };
    match (&server.product, server.major_version()) {
        (Product::Embedded | Product::Other(_), _) => Ok(Wish::NotForAll),
        (Product::MongoDb, Some(WANTED_FROM..))
            if cfg!(any(target_arch = "powerpc64", target_arch = "s390x")) =>
        {
            Ok(Wish::Never)
        }
        (Product::MongoDb, Some(WANTED_FROM..)) => Ok(Wish::Always),
        (Product::MongoDb, Some(_)) => Ok(Wish::Never),
        (Product::MongoDb, None) => Err("it depends on the server's version, which is unknown"),
    }
}

/// MongoDB's advice reversed with version 8.0. A server whose process has huge pages switched off
/// (`PR_SET_THP_DISABLE`) gets none, whatever the machine's setting.
pub(super) fn huge_pages(facts: &Facts) -> Finding {
    const ADVISED: &str = "`always` for MongoDB 8.0 and later, `never` for 7.0 and earlier";
    let wish = match wish(facts.subject.server.as_ref()) {
        Ok(wish) => wish,
        Err(why) => return mode_only(&facts.huge_pages, ADVISED, why),
    };
    let (advised, value, why) = match wish {
        Wish::Always => (
            "`always`",
            "always",
            "since MongoDB 8.0 the allocator lays out memory for huge pages and is slower without them",
        ),
        Wish::Never => (
            "`never`",
            "never",
            "up to MongoDB 7.0 memory is used in small scattered pieces; huge pages waste memory and stall the server while the kernel assembles them",
        ),
        Wish::NotForAll => (
            "`madvise` or `never`",
            "madvise",
            "this server neither uses MongoDB's allocator nor asks for huge pages; with `always`, \
                its memory use and latency depend on the machine's earlier activity",
        ),
    };
    let switched_off = facts.server_huge_pages_allowed == Ok(false);
    judged(&facts.huge_pages, advised, why, |mode| {
        let level = match (wish, mode.as_str()) {
            (Wish::Never | Wish::NotForAll, _) if switched_off => Level::Pass,
            (Wish::Always, _) if switched_off => Level::Fail,
            (Wish::Always, "always") => Level::Pass,
            // Its allocator does not ask for huge pages, so `madvise` means none.
            (Wish::Always, _) => Level::Fail,
            (Wish::Never, "always") => Level::Fail,
            (Wish::Never, "madvise") => Level::Warn,
            (Wish::NotForAll, "always") => Level::Warn,
            _ => Level::Pass,
        };
        let off = if switched_off { ", switched off for the server's process" } else { "" };
        let change = if switched_off {
            by_hand(
                "start the server without `PR_SET_THP_DISABLE` (systemd, container or launcher)",
            )
        } else {
            write_file(HUGE_PAGES, value)
        };
        (level, format!("`{mode}`{off}"), Some(change))
    })
}

fn mode_only(mode: &Reading<String>, advised: &'static str, why: &'static str) -> Finding {
    match mode {
        Ok(mode) => Finding::new(Level::Unknown, format!("`{mode}`"), advised, why),
        Err(health) => unread(health, advised, why),
    }
}

/// The manual sets `defrag` to `defer+madvise` from 8.0 on. Without huge pages it has no effect.
pub(super) fn huge_pages_defrag(facts: &Facts) -> Finding {
    let why =
        "with `always`, a page fault waits while the kernel moves memory to assemble a huge page";
    let (advised, value) = match wish(facts.subject.server.as_ref()) {
        Ok(Wish::Always) => ("`defer+madvise`", "defer+madvise"),
        _ => ("anything but `always`", "madvise"),
    };
    let off = facts.huge_pages.as_deref() == Ok("never");
    judged(&facts.huge_pages_defrag, advised, why, |mode| {
        let level = match (advised, mode.as_str()) {
            _ if off => Level::Pass,
            ("`defer+madvise`", "defer+madvise") => Level::Pass,
            (_, "always") => Level::Fail,
            ("`defer+madvise`", _) => Level::Warn,
            _ => Level::Pass,
        };
        let note = if off { ", without effect because huge pages are off" } else { "" };
        (level, format!("`{mode}`{note}"), Some(write_file(DEFRAG, value)))
    })
}

/// The manual's service file for 8.0 sets it to 0.
pub(super) fn huge_pages_padding(facts: &Facts) -> Finding {
    let why = "a huge page may contain this many unused small pages; above 0, the server uses more \
        memory than its cache size suggests";
    let wanted = wish(facts.subject.server.as_ref()) == Ok(Wish::Always);
    let advised = if wanted { "0" } else { "0 for MongoDB 8.0 and later" };
    judged(&facts.huge_pages_padding, advised, why, |pages| {
        let level = if wanted && *pages > 0 { Level::Warn } else { Level::Pass };
        (level, format!("{pages}"), Some(write_file(PADDING, "0")))
    })
}

/// The switch is inherited: a server that we start has it as well. Our own setting also matters for
/// the cost of page faults in the client.
pub(super) fn own_huge_pages(facts: &Facts) -> Finding {
    let wanted = wish(facts.subject.server.as_ref()) == Ok(Wish::Always);
    let why = "a server that `dyno` starts inherits the setting, and a client that waits for huge pages measures that wait";
    judged(&facts.own_huge_pages, "allowed, and not created during page faults", why, |own| {
        let waits = facts.huge_pages.as_deref() == Ok("always")
            && facts.huge_pages_defrag.as_deref() == Ok("always");
        let used = own
            .used_bytes
            .map(|used| format!(", {} in use", Quantity::bytes(used)))
            .unwrap_or_default();
        match (own.allowed, wanted) {
            (false, true) => (
                Level::Fail,
                "switched off for this process".to_owned(),
                Some(by_hand(
                    "start `dyno` without `PR_SET_THP_DISABLE` (systemd, container or launcher)",
                )),
            ),
            (false, false) => (Level::Pass, "switched off for this process".to_owned(), None),
            (true, _) if waits => (
                Level::Warn,
                format!("allowed, created during page faults{used}"),
                Some(write_file(DEFRAG, "defer+madvise")),
            ),
            (true, _) => (Level::Pass, format!("allowed{used}"), None),
        }
    })
}

/// Production Notes: 0 or 1.
pub(super) fn swappiness(facts: &Facts) -> Finding {
    const MOST: u64 = 1;
    let why =
        "a swapped-out cache page costs a disk access where the server expects a memory access";
    judged(&facts.swappiness, "0 or 1", why, |value| {
        let no_swap = facts.swap_bytes == Ok(0);
        let level = match *value {
            0..=MOST => Level::Pass,
            _ if no_swap => Level::Pass,
            // If swap is unknown, it may be harmless.
            _ if facts.swap_bytes.is_err() => Level::Warn,
            _ => Level::Fail,
        };
        let swap = match &facts.swap_bytes {
            Ok(0) => ", no swap".to_owned(),
            Ok(size) => format!(", {} of swap", Quantity::bytes(*size)),
            Err(_) => String::new(),
        };
        (level, format!("{value}{swap}"), Some(sysctl("vm.swappiness", "1")))
    })
}

/// Whether there are several nodes; `None` if unknown.
fn several_nodes(facts: &Facts) -> Option<bool> {
    facts.numa_nodes.as_ref().ok().map(|nodes| *nodes > 1)
}

const ONE_NODE: &str = ", without effect on one NUMA node";

/// Production Notes, "MongoDB and NUMA Hardware": 0.
pub(super) fn zone_reclaim(facts: &Facts) -> Finding {
    let why = "a node that reclaims its own memory discards cached data while other nodes have free memory";
    judged(&facts.zone_reclaim_mode, "0", why, |mode| {
        let several = several_nodes(facts) != Some(false);
        let level = if *mode != 0 && several { Level::Fail } else { Level::Pass };
        let note = if several { "" } else { ONE_NODE };
        (level, format!("{mode}{note}"), Some(sysctl("vm.zone_reclaim_mode", "0")))
    })
}

/// The advice is our own: memory is placed on purpose. A kernel that moves pages undoes the
/// placement, and it unmaps pages to see who uses them, which costs faults.
pub(super) fn numa_balancing(facts: &Facts) -> Finding {
    let why = "the kernel unmaps pages to see who uses them and moves them between nodes, which causes page faults at unpredictable times";
    judged(&facts.numa_balancing, "0", why, |mode| {
        let several = several_nodes(facts) != Some(false);
        let level = if *mode != 0 && several { Level::Warn } else { Level::Pass };
        let note = if several { "" } else { ONE_NODE };
        (level, format!("{mode}{note}"), Some(sysctl("kernel.numa_balancing", "0")))
    })
}

/// Production Notes: interleave over all nodes. A server bound to chosen nodes is just as
/// repeatable.
pub(super) fn numa_interleave(facts: &Facts) -> Finding {
    let why = "memory allocated where it is first touched fills one node, and CPUs of the other nodes pay for remote access";
    let advised = "interleaved across the nodes, or bound to chosen nodes";
    if several_nodes(facts) == Some(false) {
        return Finding::new(Level::Pass, "one NUMA node", advised, why);
    }
    judged(&facts.server_policy, advised, why, |policy| {
        let restart = by_hand("numactl --interleave=all mongod …");
        match policy {
            MemoryPolicy::Interleaved => (Level::Pass, "interleaved".to_owned(), None),
            MemoryPolicy::Chosen(nodes) => (Level::Pass, format!("`{nodes}`"), None),
            MemoryPolicy::Local if several_nodes(facts).is_none() => (
                Level::Unknown,
                "allocated where it is first touched; the number of nodes is unknown".to_owned(),
                None,
            ),
            MemoryPolicy::Local => {
                (Level::Warn, "allocated where it is first touched".to_owned(), Some(restart))
            }
        }
    })
}

/// The Operations Checklist gives 128000 for large systems. `mongod` warns if the value is below
/// twice its connections: a thread has a stack and a guard page.
pub(super) fn max_map_count(facts: &Facts) -> Finding {
    const ADVISED: u64 = 128_000;
    const MAPS_PER_CONNECTION: u64 = 2;
    /// Generous estimate for libraries, caches and arenas of a server without connections.
    const OWN_MAPS: u64 = 4_000;
    let why = "each connection has a thread with two mappings; at the limit the server refuses connections or exits";
    judged(&facts.max_map_count, "at least 128000", why, |count| {
        let needed = facts
            .subject
            .connections
            .map_or(0, |connections| connections.saturating_mul(MAPS_PER_CONNECTION) + OWN_MAPS);
        let change = Some(sysctl("vm.max_map_count", &ADVISED.max(needed).to_string()));
        let is_mongod =
            facts.subject.server.as_ref().is_none_or(|server| server.product == Product::MongoDb);
        let level = if *count < needed {
            Level::Fail
        } else if *count < ADVISED && is_mongod {
            Level::Warn
        } else {
            Level::Pass
        };
        (level, count.to_string(), change)
    })
}

/// Share of the memory that the caches may use. WiredTiger's own default is one half less 512 MiB;
/// connections, the allocator's reserve and the file system cache need the rest.
const CACHE_WARN_RATIO: f64 = 0.6;
const CACHE_FAIL_RATIO: f64 = 0.8;

/// Compares the caches of all servers with the machine's memory, or with the control group's limit
/// if it is lower.
pub(super) fn cache_memory(facts: &Facts) -> Finding {
    let why = "servers whose caches together exceed the memory swap or are killed; each server's \
        default cache size assumes that it runs alone";
    let advised = "at most 60 % of the memory for all caches";
    let limit = facts.memory_limit_bytes.as_ref().ok().copied().flatten();
    let memory = match &facts.memory_bytes {
        Ok(memory) => limit.map_or(*memory, |limit| limit.min(*memory)),
        Err(health) => return unread(health, advised, why),
    };
    let Some(server) = &facts.subject.server else {
        return Finding::new(Level::Unknown, "no server was given", advised, why);
    };
    let (cache, how) = match (server.cache_bytes, &server.product) {
        (Some(cache), _) => (cache, ""),
        (None, Product::MongoDb) => (default_cache(memory), ", its default"),
        (None, _) => {
            return Finding::new(Level::Unknown, "the cache size is unknown", advised, why);
        }
    };
    let total = cache.saturating_mul(server.instances);
    let ratio = total as f64 / memory.max(1) as f64;
    let level = match ratio {
        _ if ratio > CACHE_FAIL_RATIO => Level::Fail,
        _ if ratio > CACHE_WARN_RATIO => Level::Warn,
        _ => Level::Pass,
    };
    let found = format!(
        "{} × {}{how} of {} ({})",
        server.instances,
        Quantity::bytes(cache),
        Quantity::bytes(memory),
        Quantity::ratio(ratio).brief()
    );
    Finding::new(level, found, advised, why).with_change(smaller_cache(memory, server.instances))
}

fn smaller_cache(memory: u64, instances: u64) -> Option<Change> {
    let each = (memory as f64 * 0.5) as u64 / instances.max(1);
    let mebibytes = (each >> 20).max(1);
    Some(by_hand(format!(
        "start each server with `--cache {mebibytes}MiB` (`mongod --wiredTigerCacheSizeGB {:.2}`)",
        mebibytes as f64 / 1024.0
    )))
}

/// WiredTiger's default: half of the memory above 1 GiB, at least 256 MiB.
fn default_cache(memory: u64) -> u64 {
    (memory.saturating_sub(1 << 30) / 2).max(256 << 20)
}
