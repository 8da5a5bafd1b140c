/* Reads and writes in the virtual file system, by trampolines: the cheapest hooks, with the open file as an
 * argument.
 *
 * Timed from the entry of the function to its exit, which excludes entry and exit of the system call. Includes
 * calls of 32-bit programs. Missed: io_uring, Linux AIO, sendfile and similar calls, which bypass these
 * functions. */
#include "../calls/calls.bpf.h"

static __always_inline int enter_function(struct file *file, u32 operation, u64 requested, s64 offset)
{
	struct thread_state *state = traced_thread(bpf_get_current_task_btf());

	if (state)
		begin_call(state, file, -1, operation, requested, offset);
	return 0;
}

static __always_inline int exit_function(bool sync, s64 returned)
{
	struct thread_state *state = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

	if (state && state->start_ns && (state->operation == SYNC) == sync)
		end_call(state, bpf_ktime_get_ns(), returned);
	return 0;
}

/* A call without a position is on a file without one. */
static __always_inline s64 given_position(u64 pointer)
{
	s64 position = -1;

	if (pointer)
		bpf_probe_read_kernel(&position, sizeof(position), (void *)pointer);
	return position;
}

SEC("fentry/vfs_read")
int fentry_read(u64 *ctx)
{
	return enter_function((void *)ctx[0], READ, ctx[2], given_position(ctx[3]));
}

SEC("fexit/vfs_read")
int fexit_read(u64 *ctx)
{
	return exit_function(0, ctx[4]);
}

SEC("fentry/vfs_write")
int fentry_write(u64 *ctx)
{
	return enter_function((void *)ctx[0], WRITE, ctx[2], given_position(ctx[3]));
}

SEC("fexit/vfs_write")
int fexit_write(u64 *ctx)
{
	return exit_function(0, ctx[4]);
}

/* The address of a vector as a number: the verifier forbids arithmetic on the pointer. */
static __always_inline u64 vector_argument(u64 *ctx)
{
	u64 vector = 0;

	bpf_probe_read_kernel(&vector, sizeof(vector), &ctx[1]);
	return vector;
}

SEC("fentry/vfs_readv")
int fentry_readv(u64 *ctx)
{
	return enter_function((void *)ctx[0], READ, vector_bytes(vector_argument(ctx), ctx[2]), given_position(ctx[3]));
}

SEC("fexit/vfs_readv")
int fexit_readv(u64 *ctx)
{
	return exit_function(0, ctx[5]);
}

SEC("fentry/vfs_writev")
int fentry_writev(u64 *ctx)
{
	return enter_function((void *)ctx[0], WRITE, vector_bytes(vector_argument(ctx), ctx[2]), given_position(ctx[3]));
}

SEC("fexit/vfs_writev")
int fexit_writev(u64 *ctx)
{
	return exit_function(0, ctx[5]);
}

SEC("fentry/vfs_fsync_range")
int fentry_sync(u64 *ctx)
{
	return enter_function((void *)ctx[0], SYNC, 0, -1);
}

SEC("fexit/vfs_fsync_range")
int fexit_sync(u64 *ctx)
{
	return exit_function(1, (s32)ctx[4]);
}
