/* Block-layer requests to the devices of traced files, from any process: kernel threads issue the requests
 * for writeback and read-ahead.
 *
 * Hooks: block_rq_insert, block_rq_issue, block_rq_complete. Queue time runs from insert to issue, device
 * time from issue to completion. A request that is issued without a queue has a queue time of 0. Neither
 * includes waiting before the request exists, such as in the throttling of a control group. A full device
 * returns a request (block_rq_requeue); the last issue counts.
 * Missed: devices without requests, such as those of the device mapper (the devices below them are
 * traced); events that do not fit into the buffer, which are counted by device (see `has_room`); and
 * completions that the kernel does not report, such as those in interrupts of a sandbox's own threads. Those
 * are detected when the request's memory is reused or the trace ends. */
#include "../shared.bpf.h"

struct request_state {
	u64 insert_ns;
	u64 issue_ns;
	u64 sector;
	u32 bytes;
	u32 device;
	u32 known_by;
	u32 operation;
	u32 process;
	/* Returned by the device and not issued again yet. */
	u32 is_requeued;
};

/* Requests in progress, by address. Preallocated, because they complete in interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct request_state);
} requests SEC(".maps");

enum {
	BLOCK_READ,
	BLOCK_WRITE,
	BLOCK_FLUSH,
	BLOCK_DISCARD,
	BLOCK_OTHER,
	REQUEST_OPERATION = 0xff,
};

static __always_inline u32 block_operation(u32 flags)
{
	switch (flags & REQUEST_OPERATION) {
	case 0:
		return BLOCK_READ;
	case 1:
	case 9: /* zeroes */
		return BLOCK_WRITE;
	case 2:
		return BLOCK_FLUSH;
	case 3:
	case 5: /* secure erase */
		return BLOCK_DISCARD;
	default:
		return BLOCK_OTHER;
	}
}

/* `PF_KTHREAD` of the kernel. */
#define KERNEL_THREAD 0x00200000

/* Process of a request; 0 for a kernel thread, which issues requests for others. */
static __always_inline u32 requester(void)
{
	return bpf_get_current_task_btf()->flags & KERNEL_THREAD ? 0 : current_process();
}

static __always_inline bool is_watched(u32 device)
{
	u64 *until = bpf_map_lookup_elem(&devices, &device);

	return until && (*until == ALWAYS || bpf_ktime_get_ns() < *until);
}

/* Whether the disk of a request or its partition is traced. Keeps both: the record names the whole disk. */
static __always_inline bool find_device(struct request *request, struct request_state *state)
{
	struct gendisk *disk = request->q->disk;
	struct block_device *part = request->part;

	if (!disk)
		return 0;
	state->device = (u32)disk->major << 20 | disk->first_minor;
	state->known_by = state->device;
	if (is_watched(state->known_by))
		return 1;
	if (!part)
		return 0;
	state->known_by = part->bd_dev;
	return is_watched(state->known_by);
}

SEC("tp_btf/block_rq_insert")
int block_insert(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	struct request_state *known, state = {};
	u64 key = ctx[0];

	if (!find_device(request, &state))
		return 0;
	known = bpf_map_lookup_elem(&requests, &key);
	/* The memory may belong to another request now. */
	if (known && known->is_requeued && known->sector == request->__sector)
		return 0;
	if (known && known->issue_ns)
		count_lost(UNSEEN_ENDS, known->known_by);
	state.process = requester();
	state.insert_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&requests, &key, &state, BPF_ANY))
		count_lost(LOST_BLOCK, state.known_by);
	return 0;
}

/* Size and position may have changed until now, because waiting requests are merged. */
static __always_inline void issue(struct request *request, struct request_state *state)
{
	state->sector = request->__sector;
	state->bytes = request->__data_len;
	state->operation = block_operation(request->cmd_flags);
	state->is_requeued = 0;
	state->issue_ns = bpf_ktime_get_ns();
}

SEC("tp_btf/block_rq_issue")
int block_issue(u64 *ctx)
{
	struct request *request = (void *)ctx[0];
	struct request_state *known, state = {};
	u64 key = ctx[0];

	known = bpf_map_lookup_elem(&requests, &key);
	if (known && !known->issue_ns) {
		/* Any process may issue a queued request, so keep the one that inserted it. */
		issue(request, known);
		return 0;
	}
	if (known)
		count_lost(UNSEEN_ENDS, known->known_by);
	if (!find_device(request, &state))
		return 0;
	state.process = requester();
	issue(request, &state);
	if (bpf_map_update_elem(&requests, &key, &state, BPF_ANY))
		count_lost(LOST_BLOCK, state.known_by);
	return 0;
}

/* The request keeps its process even if another one issues it again. */
SEC("tp_btf/block_rq_requeue")
int block_requeue(u64 *ctx)
{
	u64 key = ctx[0];
	struct request_state *state = bpf_map_lookup_elem(&requests, &key);

	if (state) {
		state->issue_ns = 0;
		state->is_requeued = 1;
	}
	return 0;
}

/* Whether a request certainly belongs to the trace: a traced process sent it to a device of traced files.
 * Kernel threads send requests for any process. */
static __always_inline bool is_wanted(struct request_state *state)
{
	u64 *until = bpf_map_lookup_elem(&devices, &state->known_by);

	return until && *until == ALWAYS && is_traced(state->process);
}

SEC("tp_btf/block_rq_complete")
int block_complete(u64 *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct request *request = (void *)ctx[0];
	u32 moved = ctx[2];
	struct block_event *event = 0;
	struct request_state *state;
	u64 key = ctx[0];

	state = bpf_map_lookup_elem(&requests, &key);
	if (!state)
		return 0;
	/* Completed without another issue. */
	if (!state->issue_ns)
		goto done;
	/* Partial completion: the rest follows. */
	if (!(s32)ctx[1] && moved < request->__data_len)
		return 0;
	if (state->operation == BLOCK_OTHER)
		goto done;
	if (has_room(FOR_OTHERS) || is_wanted(state))
		event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		event->kind = EVENT_BLOCK;
		event->device = state->device;
		event->issue_ns = state->issue_ns;
		event->queue_ns = state->insert_ns ? state->issue_ns - state->insert_ns : 0;
		event->device_ns = now - state->issue_ns;
		event->sector = state->sector;
		event->bytes = state->bytes;
		event->operation = state->operation;
		event->process = state->process;
		event->known_by = state->known_by;
		bpf_ringbuf_submit(event, wakeup());
	} else {
		count_lost(LOST_BLOCK, state->known_by);
	}
done:
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
