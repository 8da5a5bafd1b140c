/* Common parts of all calls: file, start and result. */
#ifndef DYNO_CALLS_BPF_H
#define DYNO_CALLS_BPF_H

#include "../totals/totals.bpf.h"

#define FILE_KIND 0170000
#define REGULAR_FILE 0100000
#define BLOCK_DEVICE 0060000
#define APPENDS 02000

/* Identity of a file; false for anything but files and block devices. */
static __always_inline bool identify_inode(struct inode *inode, struct file_key *key)
{
	u32 mode;

	if (HAS_CAST) {
		inode = CAST(struct inode, inode);
		mode = inode->i_mode & FILE_KIND;
		key->inode = inode->i_ino;
		key->generation = inode->i_generation;
		key->device = inode->i_sb->s_dev;
	} else {
		mode = BPF_CORE_READ(inode, i_mode) & FILE_KIND;
		key->inode = BPF_CORE_READ(inode, i_ino);
		key->generation = BPF_CORE_READ(inode, i_generation);
		key->device = BPF_CORE_READ(inode, i_sb, s_dev);
	}
	return mode == REGULAR_FILE || mode == BLOCK_DEVICE;
}

static __always_inline struct inode *inode_of(struct file *file)
{
	return HAS_CAST ? CAST(struct file, file)->f_inode : BPF_CORE_READ(file, f_inode);
}

static __always_inline s64 position_of(struct file *file)
{
	return HAS_CAST ? CAST(struct file, file)->f_pos : BPF_CORE_READ(file, f_pos);
}

/* The open file of a descriptor of the current process, looked up like in the kernel. */
static __always_inline struct file *file_of(struct task_struct *task, u32 descriptor)
{
	struct fdtable *table = task->files->fdt;
	struct file *file = 0;

	if (descriptor >= table->max_fds)
		return 0;
	/* Structures that start with a pointer are read without a helper call. */
	if (HAS_CAST)
		return (void *)CAST(struct hlist_node, table->fd + descriptor)->next;
	if (bpf_probe_read_kernel(&file, sizeof(file), table->fd + descriptor))
		return 0;
	return file;
}

static __noinline int write_path(struct walked_path *path, struct dentry *dentry)
{
	u32 used = 0;
	int depth;

	if (!path)
		return 0;
	path->bytes = 0;
	path->whole = 0;
	if (!dentry)
		return 0;
	for (depth = 0; depth < PATH_DEPTH; depth++) {
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
		const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);
		long length;

		if (parent == dentry)
			path->whole = 1;
		if (!parent || parent == dentry || used >= PATH_BYTES)
			break;
		length = bpf_probe_read_kernel_str(path->names + used, NAME_BYTES, name);
		if (length <= 0)
			break;
		used += length;
		dentry = parent;
	}
	path->bytes = used;
	return 0;
}

static __always_inline struct dentry *any_dentry_of(struct inode *inode)
{
	struct hlist_node *first = BPF_CORE_READ(inode, i_dentry.first);

	if (!first)
		return 0;
	return (void *)first - bpf_core_field_offset(struct dentry, d_u.d_alias);
}

/* File systems without data on a device: proc, sysfs, tracefs, debugfs, both versions of control groups,
 * securityfs, bpf. */
static __always_inline bool is_view_of_kernel(struct inode *inode)
{
	switch (BPF_CORE_READ(inode, i_sb, s_magic)) {
	case 0x9fa0:
	case 0x62656572:
	case 0x74726163:
	case 0x64626720:
	case 0x27e0eb:
	case 0x63677270:
	case 0x73636673:
	case 0xcafe4a11:
		return 1;
	default:
		return 0;
	}
}

/* Distinguishes names of a file: its own name and its folder. Renamed folders above that are not noticed. */
static __always_inline u64 name_of(struct dentry *dentry)
{
	u64 folder, name;

	if (!dentry)
		return 0;
	if (HAS_CAST) {
		dentry = CAST(struct dentry, dentry);
		folder = dentry->d_parent->d_inode->i_ino;
		name = dentry->d_name.hash;
	} else {
		folder = BPF_CORE_READ(dentry, d_parent, d_inode, i_ino);
		name = BPF_CORE_READ(dentry, d_name.hash);
	}
	return folder * 0x9e3779b97f4a7c15ull ^ name;
}

static __always_inline struct dentry *dentry_of(struct inode *inode, struct file *file)
{
	if (!file)
		return any_dentry_of(inode);
	return HAS_CAST ? CAST(struct file, file)->f_path.dentry : BPF_CORE_READ(file, f_path.dentry);
}

/* Traces the device of a file until there is a verdict: a call that starts now may reach the device before
 * user space answers. */
#define ANSWER_NS 1000000000ull

static __always_inline void look_at_device(struct file_key *key, struct inode *inode)
{
	u64 until = bpf_ktime_get_ns() + ANSWER_NS;
	u32 device = key->device;
	u64 *known;

	if ((BPF_CORE_READ(inode, i_mode) & FILE_KIND) == BLOCK_DEVICE)
		device = BPF_CORE_READ(inode, i_rdev);
	known = bpf_map_lookup_elem(&devices, &device);
	if (!known)
		bpf_map_update_elem(&devices, &device, &until, BPF_NOEXIST);
	else if (*known != ALWAYS)
		*known = until;
}

/* Asks user space for a verdict. Reads the name while the process still has the file open. */
static __always_inline void send_file(struct file_event *event, struct file_key *key, struct file_slot *slot,
				      struct inode *inode, struct dentry *dentry, s32 descriptor)
{
	event->kind = EVENT_FILE;
	event->unused = 0;
	event->key = *key;
	event->slot = *slot;
	event->process = current_process();
	event->descriptor = descriptor;
	write_path(&event->path, dentry);
	/* In this order, so that requests arrive after the data that user space needs for them. */
	bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
	look_at_device(key, inode);
}

/* Numbers a new file and notifies user space. Returns its verdict in the upper and its number in the lower
 * half; all ones on failure. */
static __noinline u64 new_file(struct file_key *key, struct inode *inode, struct file *file, s32 descriptor)
{
	struct file_slot slot = {}, *known;
	struct file_event *event;
	struct dentry *dentry;

	if (!key || is_view_of_kernel(inode))
		return -1;
	slot.id = __sync_fetch_and_add(&next_file, 1);
	slot.verdict = settings.first_verdict;
	dentry = dentry_of(inode, file);
	slot.name = name_of(dentry);
	slot.met_ns = bpf_ktime_get_ns();
	slot.asked = 1;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(LOST_FILES);
		return -1;
	}
	if (bpf_map_update_elem(&files, key, &slot, BPF_NOEXIST)) {
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		known = bpf_map_lookup_elem(&files, key);
		if (!known) {
			count(LOST_FILES);
			return -1;
		}
		return (u64)known->verdict << 32 | known->id;
	}
	send_file(event, key, &slot, inode, dentry, descriptor);
	return (u64)slot.verdict << 32 | slot.id;
}

/* An excluded file may have been renamed: it then needs a new verdict, and its calls are sent until then.
 * Alternating names of one file must not fill the buffer. */
#define FREE_QUESTIONS 16
#define QUESTION_GAP_NS 10000000

static __noinline u64 judge_again(struct file_slot *slot, struct file_key *key, struct inode *inode,
				  struct file *file, s32 descriptor)
{
	struct dentry *dentry = dentry_of(inode, file);
	struct file_slot asked = {};
	struct file_event *event;
	u64 denied = (u64)DENIED << 32;
	u64 now, name, before;

	if (!slot || !key)
		return denied;
	before = slot->name;
	name = name_of(dentry);
	if (!dentry || name == before)
		return denied | slot->id;
	now = bpf_ktime_get_ns();
	if (slot->asked >= FREE_QUESTIONS && now - slot->met_ns < QUESTION_GAP_NS)
		return denied | slot->id;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(LOST_FILES);
		return denied | slot->id;
	}
	asked.id = slot->id;
	/* Another thread may have been faster. */
	if (__sync_val_compare_and_swap(&slot->name, before, name) != before) {
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		return (u64)PENDING << 32 | asked.id;
	}
	slot->met_ns = now;
	slot->asked += 1;
	slot->verdict = PENDING;
	asked.verdict = PENDING;
	asked.name = name;
	asked.met_ns = now;
	asked.asked = slot->asked;
	send_file(event, key, &asked, inode, dentry, descriptor);
	return (u64)PENDING << 32 | asked.id;
}

/* Verdict on a file in the upper half, its number in the lower half. */
static __always_inline u64 verdict_on(struct inode *inode, struct file *file, s32 descriptor)
{
	struct file_key key = {};
	struct file_slot *slot;

	if (!identify_inode(inode, &key))
		return -1;
	slot = bpf_map_lookup_elem(&files, &key);
	if (slot && slot->verdict == DENIED)
		return judge_again(slot, &key, inode, file, descriptor);
	if (slot)
		return (u64)slot->verdict << 32 | slot->id;
	return new_file(&key, inode, file, descriptor);
}

/* As above for files that are or may be traced; -1 for others. */
static __always_inline s64 traced_file(struct inode *inode, struct file *file, s32 descriptor)
{
	u64 verdict = verdict_on(inode, file, descriptor);

	return verdict >> 32 >= DENIED ? -1ll : (s64)verdict;
}

/* The same, faster for the file of the thread's last call. */
static __always_inline s64 traced_file_for(struct thread_state *state, struct inode *inode, struct file *file,
					   s32 descriptor)
{
	u64 verdict, system, number;
	u32 generation;

	if (!HAS_CAST)
		return traced_file(inode, file, descriptor);
	inode = CAST(struct inode, inode);
	system = (u64)inode->i_sb;
	number = inode->i_ino;
	generation = inode->i_generation;
	if (state->known_inode == (u64)inode && state->known_number == number &&
	    state->known_generation == generation && state->known_system == system)
		return (s64)ALLOWED << 32 | state->known_id;
	verdict = verdict_on(inode, file, descriptor);
	/* Do not cache a pending verdict: it may become a denial. */
	if (verdict >> 32 == ALLOWED) {
		state->known_inode = (u64)inode;
		state->known_system = system;
		state->known_number = number;
		state->known_generation = generation;
		state->known_id = (u32)verdict;
	}
	return verdict >> 32 >= DENIED ? -1ll : (s64)verdict;
}

static __always_inline void send_call(struct call *call)
{
	struct call_event *event = 0;

	if (call->verdict == ALLOWED || has_room(FOR_PENDING))
		event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count_lost(LOST_CALLS, call->file);
		return;
	}
	event->kind = EVENT_CALL;
	event->file = call->file;
	event->start_ns = call->start_ns;
	event->latency_ns = call->latency_ns;
	event->offset = call->offset;
	event->requested = call->requested;
	event->returned = call->returned;
	event->process = call->process;
	event->thread = call->thread;
	event->operation = call->operation;
	event->unused = 0;
	event->fetched = call->fetched;
	bpf_ringbuf_submit(event, wakeup());
}

static __always_inline void record_call(struct call *call)
{
	if (settings.aggregated)
		add_to_total(call);
	else
		send_call(call);
}

/* State of the current thread; null if its process is not traced. */
static __always_inline struct thread_state *traced_thread(struct task_struct *task)
{
	struct thread_state *state = bpf_task_storage_get(&threads, task, 0, 0);

	if (state && state->traced)
		return state;
	if (!is_traced(current_process()))
		return 0;
	state = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state)
		state->traced = 1;
	return state;
}

/* Bytes that a thread has requested from devices so far. The kernel counts them when a read enters the block
 * layer, before throttling or other threads delay it. */
static __always_inline u64 fetched_by(struct task_struct *task)
{
	return bpf_core_field_exists(task->ioac.read_bytes) ? task->ioac.read_bytes : 0;
}

static __always_inline s64 fetched_since(u64 before)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_core_field_exists(task->ioac.read_bytes) ? (s64)(task->ioac.read_bytes - before) : -1;
}

/* Starts a call. An `offset` of -1 means the position of the open file. Reads the clock last, so that the
 * probe's own time is not part of the call. */
static __always_inline void begin_call(struct thread_state *state, struct file *file, s32 descriptor,
				       u32 operation, u64 requested, s64 offset)
{
	s64 found;

	/* A write to a synchronous file syncs in a function of its own within the write. */
	if (operation == SYNC && state->start_ns && state->operation == WRITE)
		return;
	/* The end of this call must not count for an earlier call whose end was missed. */
	state->start_ns = 0;
	if (operation != SYNC && requested < settings.smallest_bytes)
		return;
	found = traced_file_for(state, inode_of(file), file, descriptor);
	if (found < 0)
		return;
	state->requested = requested;
	state->offset = offset;
	state->file = (u64)file;
	state->id = found;
	state->verdict = found >> 32;
	state->operation = operation;
	/* No room in the totals. */
	if (!settings.aggregated)
		state->fetched = fetched_by(bpf_get_current_task_btf());
	state->start_ns = bpf_ktime_get_ns();
}

/* Start of a call without a position: the open file's position is now behind the transferred bytes. This
 * also holds for appending. */
static __always_inline s64 begin_of(struct file *file, s64 returned)
{
	s64 position = position_of(file);

	return returned > 0 ? position - returned : position;
}

static __always_inline s64 offset_of(struct thread_state *state, s64 returned)
{
	struct file *file = (void *)state->file;
	u32 flags;

	if (state->operation == SYNC)
		return state->offset;
	if (state->offset < 0)
		return begin_of(file, returned);
	if (state->operation == WRITE && returned > 0) {
		flags = HAS_CAST ? CAST(struct file, file)->f_flags : BPF_CORE_READ(file, f_flags);
		/* Such a file is appended to at any position. */
		if (flags & APPENDS)
			return BPF_CORE_READ(file, f_inode, i_size) - returned;
	}
	return state->offset;
}

/* Ends a call. The clock was read before. */
static __always_inline void end_call(struct thread_state *state, u64 now, s64 returned)
{
	struct call call = {
		.start_ns = state->start_ns,
		.latency_ns = now - state->start_ns,
		.requested = state->requested,
		.returned = returned,
		.file = state->id,
		.verdict = state->verdict,
		.operation = state->operation,
	};

	/* Not needed for totals. */
	if (!settings.aggregated) {
		u64 both = bpf_get_current_pid_tgid();

		call.process = both >> 32;
		call.thread = (u32)both;
		call.fetched = fetched_since(state->fetched);
	}

	state->start_ns = 0;
	call.offset = offset_of(state, returned);
	record_call(&call);
}

/* Bytes of a vector of buffers. Only the first buffers of very long vectors count; the transferred bytes
 * count if they are more. */
#define VECTOR_BUFFERS 256

struct vector_part {
	u64 base;
	u64 length;
};

static __noinline u64 vector_bytes(u64 vector, u64 buffers)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < VECTOR_BUFFERS; i++) {
		struct vector_part part = {};

		if (i >= buffers)
			break;
		if (bpf_probe_read_user(&part, sizeof(part), (void *)vector + i * sizeof(part)))
			break;
		bytes += part.length;
	}
	return bytes;
}

#endif
