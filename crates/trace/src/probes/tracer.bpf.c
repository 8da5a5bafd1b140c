/* All probes as one object: they share their maps and settings. What the kernel does not offer, or
 * what is not needed, is not loaded. */
#include "process/process.bpf.c"
#include "syscalls/syscalls.bpf.c"
#include "syscall_points/syscall_points.bpf.c"
#include "vfs_fentry/vfs_fentry.bpf.c"
#include "vfs_kprobe/vfs_kprobe.bpf.c"
#include "io_uring/io_uring.bpf.c"
#include "faults/faults.bpf.c"
#include "block/block.bpf.c"

/* The helpers that the probes call are offered to programs under a licence that the GPL is
 * compatible with; these files are under MIT or Apache-2.0 as the rest is. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
