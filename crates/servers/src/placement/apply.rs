//! Sets the CPUs and the memory policy of a thread by system calls.

use std::io;
use std::ptr;

use libc::{c_int, c_long, c_ulong};

use dyno_plan::placement::IdSet;
use dyno_plan::placement::{InstancePlacement, MemoryPolicy};

/// A placement in the form of the kernel's system calls. It is created before a fork; setting it
/// afterwards only makes system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedPlacement {
    cpus: Option<Vec<c_ulong>>,
    memory: Option<(c_int, Vec<c_ulong>)>,
}

impl PreparedPlacement {
    /// Prepares a placement. Unspecified parts stay untouched.
    pub fn new(placement: &InstancePlacement) -> PreparedPlacement {
        let memory = match &placement.memory {
            MemoryPolicy::Default => None,
            MemoryPolicy::Local => Some((libc::MPOL_LOCAL, Vec::new())),
            MemoryPolicy::Bind(nodes) => Some((libc::MPOL_BIND, mask(nodes))),
            // The planner names all nodes; without them the mask is empty, and the kernel refuses
            // it.
            MemoryPolicy::Interleave(_) | MemoryPolicy::InterleaveAll => {
                Some((libc::MPOL_INTERLEAVE, mask(&placement.memory.nodes())))
            }
            MemoryPolicy::Preferred(_) => {
                Some((libc::MPOL_PREFERRED, mask(&placement.memory.nodes())))
            }
        };
        PreparedPlacement { cpus: placement.cpus.as_ref().map(mask), memory }
    }

    /// Sets CPUs and memory policy of the calling thread. Threads and processes that it starts from
    /// then on inherit both, even through `exec`.
    ///
    /// May be called between fork and exec: it neither allocates nor takes a lock.
    ///
    /// # Errors
    /// The kernel's error: `EINVAL` if no CPU or node of the placement may be used, `EPERM` if a
    /// container forbids the call, `ENOSYS` for a memory policy on a kernel without nodes.
    pub fn apply_to_current_thread(&self) -> io::Result<()> {
        self.apply_cpus_to_thread(0)?;
        let Some((mode, nodes)) = &self.memory else {
            return Ok(());
        };
        let mask = if nodes.is_empty() { ptr::null() } else { nodes.as_ptr() };
        // The kernel uses one bit less than the count.
        let bits = match nodes.len() {
            0 => 0,
            words => words * c_ulong::BITS as usize + 1,
        };
        // SAFETY: the mask has as many words as the count of bits says, or is null with a count of
        // 0; the kernel copies it.
        let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, *mode, mask, bits) };
        outcome(result)
    }

    /// Sets the CPUs of a thread of this or another process by its id, 0 for the calling thread.
    /// The memory policy of another thread cannot be set.
    ///
    /// # Errors
    /// The errors of the calling thread, and `ESRCH` if the thread is gone.
    pub fn apply_cpus_to_thread(&self, thread: i32) -> io::Result<()> {
        let Some(cpus) = &self.cpus else {
            return Ok(());
        };
        let bytes = size_of_val(cpus.as_slice());
        // SAFETY: the mask has as many bytes as the call says; the kernel copies it.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setaffinity, thread, bytes, cpus.as_ptr()) };
        outcome(result)
    }
}

/// One bit for each number, at least one word: the kernel must refuse an empty mask.
fn mask(ids: &IdSet) -> Vec<c_ulong> {
    let bits = c_ulong::BITS as usize;
    let words = ids.last().map_or(1, |last| last as usize / bits + 1);
    let mut mask = vec![0; words];
    for id in ids.iter() {
        mask[id as usize / bits] |= 1 << (id as usize % bits);
    }
    mask
}

fn outcome(result: c_long) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Advice for a placement that the kernel refuses.
pub(crate) fn refusal_hint(error: &io::Error) -> Option<&'static str> {
    let hint = match error.raw_os_error()? {
        libc::EPERM => {
            "the container forbids it; add the capability SYS_NICE, or leave memory to the system with `CPUS@default` as a place"
        }
        libc::EINVAL => {
            "CPUs or memory nodes became unavailable after the placement was planned; plan it again"
        }
        libc::ENOSYS => "the kernel has no memory policies; use the memory policy `default`",
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_is_as_long_as_its_largest_number_needs() {
        let mask = |text: &str| mask(&text.parse().unwrap());
        assert_eq!(mask("0,2"), [5]);
        assert_eq!(mask("63"), [1 << 63]);
        assert_eq!(mask("1,64,130"), [2, 1, 4]);
        assert_eq!(mask(""), [0]);
    }

    #[test]
    fn unspecified_placement_is_not_set() {
        let prepared = PreparedPlacement::new(&InstancePlacement::default());
        assert_eq!((&prepared.cpus, &prepared.memory), (&None, &None));
        prepared.apply_to_current_thread().unwrap();
    }
}
