/* The traced processes: children of a traced process are traced from their first instruction, and a process
 * is removed when its last thread exits. Threads share the process ID, so they need no entry.
 *
 * Hooks: sched_process_fork, sched_process_exit. Cost: one lookup per fork and exit of any process. */
#include "../shared.bpf.h"

SEC("tp_btf/sched_process_fork")
int process_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];
	u32 from = parent->tgid;
	u32 to = child->tgid;
	u32 traced = TRACED;

	if (from != to && bpf_map_lookup_elem(&processes, &from))
		bpf_map_update_elem(&processes, &to, &traced, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int process_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 process = task->tgid;

	if (is_traced(process) && task->signal->live.counter == 0)
		bpf_map_delete_elem(&processes, &process);
	return 0;
}
