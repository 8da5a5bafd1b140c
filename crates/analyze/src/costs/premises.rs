//! Conditions under which a ratio of counters describes the servers' own work. Each check returns the reason
//! for leaving out the ratio.

use super::{CHECKPOINT_INTERVAL_S, client_s};
use dyno_record::consumption::{Consumption, DeviceUse};
use dyno_record::experiment::ChangedDocuments;
use dyno_record::model::{PhaseRecord, ResourceKind, RunDocument};
use dyno_record::quantity::Quantity;

/// Multiple of the servers' requested bytes from which others are assumed to use the device as well: file
/// system journals and rewritten pages add less.
const MOST_OF_SERVERS: f64 = 3.0;

/// Bytes of others up to which nothing is left out: some pages do not change a ratio.
const LEAST_OF_OTHERS_BYTES: u64 = 1 << 20;

/// Largest share of a phase's writes that comes from changes of another phase.
const MOST_ELSEWHERE_RATIO: f64 = 0.1;

/// A server writes some hundred kilobytes by itself: diagnostic data, checkpoint metadata, whole pages for one
/// document. With less changed data than this they are most of the ratio.
const LEAST_CHANGED_BYTES: f64 = 1_048_576.0;

/// Largest ratio of other processes' CPU work to the bench's own.
const MOST_WORK_OF_OTHERS: f64 = 1.0;

type Premise = Result<(), String>;

/// Whether the servers caused most device writes.
pub(super) fn device_writes(used: &Consumption, device: &DeviceUse) -> Premise {
    mostly_own("wrote", device.written_bytes, used.server_written_bytes)
}

/// Whether the servers caused most device reads.
pub(super) fn device_reads(used: &Consumption, device: &DeviceUse) -> Premise {
    mostly_own("read", device.read_bytes, used.server_read_bytes)
}

/// Whether the processors worked mostly for servers and client.
pub(super) fn energy(document: &RunDocument, phase: &PhaseRecord, used: &Consumption) -> Premise {
    let of_machine = document
        .resources
        .iter()
        .find(|one| one.phase == phase.name && one.resource == ResourceKind::HostCpu)
        .zip(used.server_cpu_s);
    let Some((machine, server_s)) = of_machine else {
        return Ok(());
    };
    let own_s = server_s + client_s(phase);
    let others_s = machine.busy_s - own_s;
    require(others_s <= own_s * MOST_WORK_OF_OTHERS, || {
        format!(
            "others used {} of CPU time, servers and client {}",
            Quantity::seconds(others_s),
            Quantity::seconds(own_s)
        )
    })
}

/// Whether the devices wrote exactly the documents that the phase changed.
pub(super) fn write_amplification(
    used: &Consumption,
    device: &DeviceUse,
    changed: &ChangedDocuments,
    duration_s: f64,
) -> Premise {
    device_writes(used, device)?;
    require(changed.bytes() >= LEAST_CHANGED_BYTES, || {
        format!(
            "the changed documents have only {}, less than a server writes by itself",
            Quantity::bytes(changed.bytes() as u64)
        )
    })?;
    let most = changed.written_bytes as f64 * MOST_ELSEWHERE_RATIO;
    let (start, end) = (used.dirty_at_start_bytes, used.dirty_at_end_bytes);
    let Some(deferred) = device.deferred_bytes else {
        return match start.zip(end) {
            Some((start, end)) => require(start.abs_diff(end) as f64 <= most, || {
                format!(
                    "{} of changes in the cache were unwritten at the start of the phase, and {} at its end",
                    Quantity::bytes(start),
                    Quantity::bytes(end)
                )
            }),
            None => require(duration_s >= CHECKPOINT_INTERVAL_S, no_checkpoint),
        };
    };
    require(start.unwrap_or(0) as f64 <= most, || {
        format!(
            "{} of changes from the previous phase were still unwritten in the cache",
            Quantity::bytes(start.unwrap_or(0))
        )
    })?;
    let own = end.zip(used.server_written_bytes);
    mostly_own("wrote after the phase", deferred, own.map(|(dirty, written)| dirty + written))
}

/// Whether the files contain the documents.
pub(super) fn space_amplification(
    used: &Consumption,
    data_bytes: u64,
    phase: &PhaseRecord,
) -> Premise {
    match used.dirty_at_end_bytes {
        Some(dirty) => require(dirty as f64 <= data_bytes as f64 * MOST_ELSEWHERE_RATIO, || {
            format!(
                "{} of changes in the cache were unwritten at the end of the phase",
                Quantity::bytes(dirty)
            )
        }),
        None => require(phase.duration_s >= CHECKPOINT_INTERVAL_S, no_checkpoint),
    }
}

fn mostly_own(what: &str, all: u64, own: Option<u64>) -> Premise {
    let Some(own) = own else { return Ok(()) };
    let is_own = all as f64 <= own as f64 * MOST_OF_SERVERS;
    require(is_own || all - own <= LEAST_OF_OTHERS_BYTES, || {
        format!(
            "others {what} most of it: the devices {}, the servers {}",
            Quantity::bytes(all),
            Quantity::bytes(own)
        )
    })
}

fn no_checkpoint() -> String {
    format!(
        "the phase is shorter than the {} between two checkpoints, and the servers do not report their unwritten changes",
        Quantity::seconds(CHECKPOINT_INTERVAL_S)
    )
}

fn require(holds: bool, reason: impl FnOnce() -> String) -> Premise {
    if holds { Ok(()) } else { Err(reason()) }
}
