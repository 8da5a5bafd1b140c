/* Page faults on mapped files.
 *
 * Timed from mm_filemap_fault, where the kernel starts to look for the page, to the software event of major
 * page faults, which fires when a fault that waited for a device is done.
 * Missed: reads of mapped pages in memory, which the kernel does not see, and pages that are mapped around a
 * missing one. A fault whose page was in memory has no event at its end; it is recorded with a latency of 0
 * at the thread's next fault, so that it does not get the end of that fault. */
#include "../calls/calls.bpf.h"

static __always_inline void record_fault(struct thread_state *state, u64 latency_ns, s64 fetched)
{
	u64 both = bpf_get_current_pid_tgid();
	struct call call = {
		.start_ns = state->fault_start_ns,
		.latency_ns = latency_ns,
		.requested = 1ull << settings.page_shift,
		.offset = state->fault_offset,
		.returned = 1ll << settings.page_shift,
		.file = state->fault_id,
		.verdict = state->fault_verdict,
		.operation = FAULT,
		.process = both >> 32,
		.thread = (u32)both,
		.fetched = fetched,
	};

	state->fault_start_ns = 0;
	record_call(&call);
}

SEC("tp_btf/mm_filemap_fault")
int fault_begin(u64 *ctx)
{
	struct address_space *mapping = (void *)ctx[0];
	u64 offset = ctx[1] << settings.page_shift;
	struct thread_state *state = traced_thread(bpf_get_current_task_btf());
	s64 found;

	if (!state)
		return 0;
	found = traced_file(mapping->host, 0, -1);
	if (state->fault_start_ns) {
		/* The kernel retries after waiting: this is the same fault. */
		if (found >= 0 && state->fault_id == (u32)found && state->fault_offset == offset)
			return 0;
		record_fault(state, 0, -1);
	}
	if (found < 0)
		return 0;
	state->fault_id = found;
	state->fault_verdict = found >> 32;
	state->fault_offset = offset;
	state->fault_fetched = fetched_by(bpf_get_current_task_btf());
	state->fault_start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("perf_event")
int fault_end(void *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct thread_state *state = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

	if (state && state->fault_start_ns)
		record_fault(state, now - state->fault_start_ns, fetched_since(state->fault_fetched));
	return 0;
}

/* Records the last fault of a thread if it had no end. */
SEC("tp_btf/sched_process_exit")
int fault_exit(u64 *ctx)
{
	struct thread_state *state = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

	if (state && state->fault_start_ns)
		record_fault(state, 0, -1);
	return 0;
}
