/* Reads and writes in the virtual file system, by breakpoints, for kernels without trampolines. Times and
 * limits are those of `vfs_fentry`; each call costs more. */
#include "../calls/calls.bpf.h"

static __always_inline int enter_probed(struct pt_regs *ctx, u32 operation, bool vector)
{
	struct thread_state *state = traced_thread(bpf_get_current_task_btf());
	u64 requested = FUNCTION_2(ctx);
	s64 offset = -1;

	if (!state)
		return 0;
	if (operation == SYNC)
		requested = 0;
	else if (FUNCTION_3(ctx))
		bpf_probe_read_kernel(&offset, sizeof(offset), (void *)FUNCTION_3(ctx));
	if (vector)
		requested = vector_bytes(FUNCTION_1(ctx), FUNCTION_2(ctx));
	begin_call(state, (void *)FUNCTION_0(ctx), -1, operation, requested, offset);
	return 0;
}

static __always_inline int leave_probed(struct pt_regs *ctx, bool sync)
{
	struct thread_state *state = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	s64 returned = FUNCTION_RESULT(ctx);

	if (state && state->start_ns && (state->operation == SYNC) == sync)
		end_call(state, bpf_ktime_get_ns(), sync ? (s32)returned : returned);
	return 0;
}

/* The return of every transfer. */
SEC("kretprobe")
int kprobe_return(struct pt_regs *ctx)
{
	return leave_probed(ctx, 0);
}

SEC("kretprobe")
int kprobe_sync_return(struct pt_regs *ctx)
{
	return leave_probed(ctx, 1);
}

SEC("kprobe")
int kprobe_read(struct pt_regs *ctx)
{
	return enter_probed(ctx, READ, 0);
}

SEC("kprobe")
int kprobe_write(struct pt_regs *ctx)
{
	return enter_probed(ctx, WRITE, 0);
}

SEC("kprobe")
int kprobe_readv(struct pt_regs *ctx)
{
	return enter_probed(ctx, READ, 1);
}

SEC("kprobe")
int kprobe_writev(struct pt_regs *ctx)
{
	return enter_probed(ctx, WRITE, 1);
}

SEC("kprobe")
int kprobe_sync(struct pt_regs *ctx)
{
	return enter_probed(ctx, SYNC, 0);
}
