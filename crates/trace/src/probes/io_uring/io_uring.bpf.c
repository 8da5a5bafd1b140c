/* Reads, writes and syncs by io_uring.
 *
 * Timed from io_uring_submit_req, where the kernel takes a request from the ring, to io_uring_complete, where
 * it posts the result.
 * Missed: requests without a result on success, and the requested bytes of vectored requests on registered
 * buffers. The time of a linked request includes waiting for the requests before it. */
#include "../calls/calls.bpf.h"

struct ring_call {
	u64 start_ns;
	u64 requested;
	s64 offset;
	u32 operation;
	u32 process;
	u32 thread;
	s32 descriptor;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct ring_call);
} ring_calls SEC(".maps");

/* Numbers of linux/io_uring.h. */
enum {
	RING_READV = 1,
	RING_WRITEV = 2,
	RING_FSYNC = 3,
	RING_READ_FIXED = 4,
	RING_WRITE_FIXED = 5,
	RING_SYNC_RANGE = 8,
	RING_READ = 22,
	RING_WRITE = 23,
	RING_READV_FIXED = 58,
	RING_WRITEV_FIXED = 59,
	RING_FIXED_FILE = 1,
};

static __always_inline u32 ring_operation(u8 opcode)
{
	switch (opcode) {
	case RING_READV:
	case RING_READ_FIXED:
	case RING_READ:
	case RING_READV_FIXED:
		return READ;
	case RING_WRITEV:
	case RING_WRITE_FIXED:
	case RING_WRITE:
	case RING_WRITEV_FIXED:
		return WRITE;
	case RING_FSYNC:
	case RING_SYNC_RANGE:
		return SYNC;
	default:
		return OPERATIONS;
	}
}

SEC("tp_btf/io_uring_submit_req")
int ring_submit(u64 *ctx)
{
	struct io_kiocb *request = (void *)ctx[0];
	u64 both = bpf_get_current_pid_tgid();
	u8 opcode = request->opcode;
	struct ring_call call = { .operation = ring_operation(opcode), .offset = -1 };
	u64 key = ctx[0];

	/* Requests without a result leave an entry, and the kernel reuses their memory. */
	bpf_map_delete_elem(&ring_calls, &key);
	if (call.operation >= OPERATIONS || !(settings.operations & 1 << call.operation))
		return 0;
	if (!is_traced(both >> 32))
		return 0;
	if (call.operation != SYNC) {
		struct io_rw *transfer = (void *)request;

		call.offset = BPF_CORE_READ(transfer, kiocb.ki_pos);
		call.requested = BPF_CORE_READ(transfer, len);
		if (opcode == RING_READV || opcode == RING_WRITEV)
			call.requested = vector_bytes(BPF_CORE_READ(transfer, addr), call.requested);
		else if (opcode == RING_READV_FIXED || opcode == RING_WRITEV_FIXED)
			call.requested = 0;
	}
	call.descriptor = request->flags & RING_FIXED_FILE ? -1 : request->cqe.fd;
	call.process = both >> 32;
	call.thread = (u32)both;
	call.start_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&ring_calls, &key, &call, BPF_ANY);
	return 0;
}

static __always_inline int ring_end(u64 key, s64 returned)
{
	u64 now = bpf_ktime_get_ns();
	struct ring_call *begun = bpf_map_lookup_elem(&ring_calls, &key);
	struct call call = {};
	struct file *file;
	s64 found;

	if (!begun)
		return 0;
	call.start_ns = begun->start_ns;
	call.latency_ns = now - begun->start_ns;
	call.requested = begun->requested;
	call.offset = begun->offset;
	call.returned = returned;
	call.operation = begun->operation;
	call.process = begun->process;
	call.thread = begun->thread;
	/* Another thread may have executed it. */
	call.fetched = -1;
	if (call.operation != SYNC && returned > 0 && (u64)returned > call.requested)
		call.requested = returned;
	file = BPF_CORE_READ((struct io_kiocb *)key, file);
	found = file && (call.operation == SYNC || call.requested >= settings.smallest_bytes)
		? traced_file(inode_of(file), file, begun->descriptor) : -1;
	bpf_map_delete_elem(&ring_calls, &key);
	if (found < 0)
		return 0;
	call.file = found;
	call.verdict = found >> 32;
	if (call.operation != SYNC && call.offset < 0)
		call.offset = begin_of(file, returned);
	record_call(&call);
	return 0;
}

/* Arguments since Linux 6.15: context, request, completion queue entry. */
SEC("tp_btf/io_uring_complete")
int ring_complete_entry(u64 *ctx)
{
	struct io_uring_cqe *entry = (void *)ctx[2];

	return ring_end(ctx[1], BPF_CORE_READ(entry, res));
}

/* Arguments before Linux 6.15: context, request, user data, result. */
SEC("tp_btf/io_uring_complete")
int ring_complete_result(u64 *ctx)
{
	return ring_end(ctx[1], (s32)ctx[3]);
}
