/* What the probes share with each other and with user space: settings, maps, events. The layouts are
 * those of `ebpf/layout.rs`; a test compares their sizes. */
#ifndef DYNO_SHARED_BPF_H
#define DYNO_SHARED_BPF_H

#include "kernel.bpf.h"

enum operation { READ, WRITE, SYNC, FAULT, OPERATIONS };

/* How a system call is read: the lowest bits are its operation. */
enum {
	CODE_OPERATION = 0x03,
	CODE_VECTOR = 0x04,   /* its second argument is a vector of buffers */
	CODE_POSITION = 0x08, /* its fourth argument is the position */
	CODE_RANGE = 0x10,    /* sync of a range: position and length are the second and third */
	CODE_CALL = 0x20,
	CODE_NAME = 0x40,   /* changes a name: which, in the lowest bits */
	CODE_UNSEEN = 0x80, /* moves data in a way that is only counted: which, in the lowest bits */
};

enum { NAME_RENAME, NAME_RENAMEAT, NAME_UNLINK, NAME_UNLINKAT };

enum counter {
	LOST_CALLS,
	LOST_BLOCK,
	LOST_NAMES,
	LOST_FILES,
	LOST_TOTALS,
	UNSEEN_AIO,
	UNSEEN_COPIES,
	UNSEEN_ENDS,
	COUNTERS,
};

#define SYSCALLS 512

struct settings {
	u8 syscalls[SYSCALLS];
	u64 smallest_bytes;
	u64 wake_bytes; /* a quarter of the buffer */
	u32 aggregated;
	u32 operations;    /* bits by operation */
	u32 first_verdict; /* of a file that is seen the first time */
	u32 page_shift;
	u32 compat_bit; /* of thread_info.status: the call has numbers and arguments of 32 bits */
	u32 unused;
};

const volatile struct settings settings = {};

enum { TRACED = 1, CHILDREN_ONLY = 2 };

/* Processes by number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
} processes SEC(".maps");

struct file_key {
	u64 inode;
	u32 device; /* as the kernel has it: major << 20 | minor */
	u32 generation;
};

enum { PENDING, ALLOWED, DENIED };

struct file_slot {
	u32 id;
	u32 verdict;
	u64 name;   /* what the name was when it was judged: see `name_of` */
	u64 met_ns; /* when user space was last asked for a verdict */
	u32 asked;  /* how often that was */
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct file_key);
	__type(value, struct file_slot);
} files SEC(".maps");

u32 next_file = 0;

/* What a thread is doing. */
struct thread_state {
	u32 traced; /* known to be of a traced process */
	u32 known_id;
	/* The file of its last call: most calls are on the same file as the one before. */
	u64 known_inode;
	u64 known_system;
	u64 known_number;
	u32 known_generation;
	u32 verdict; /* on the file of the call, when it began */
	u64 start_ns; /* 0: no call is under way */
	u64 requested;
	s64 offset; /* -1: that of the open file */
	u64 file;
	u32 id;
	u32 operation;
	u64 fetched; /* what the thread had asked devices for before */
	u64 fault_fetched;
	u64 fault_start_ns; /* 0: no page fault is under way */
	u64 fault_offset;
	u32 fault_id;
	u32 fault_verdict;
	u32 name_code; /* of a call that changes a name; 0: none is under way */
	u32 unused;
	u64 name_from;
	u64 name_to;
	s32 folder_from;
	s32 folder_to;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* What was lost is reported by file or device: only user space knows which of them are wanted. */
struct loss_key {
	u32 counter;
	u32 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct loss_key);
	__type(value, u64);
} losses SEC(".maps");

/* Events. The size is set when the object is opened. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

enum { EVENT_CALL, EVENT_FILE, EVENT_BLOCK, EVENT_NAME };

struct call_event {
	u32 kind;
	u32 file;
	u64 start_ns;
	u64 latency_ns;
	s64 offset;
	u64 requested;
	s64 returned;
	u32 process;
	u32 thread;
	u32 operation;
	u32 unused;
	s64 fetched; /* -1: not known */
};

#define PATH_BYTES 2048
#define NAME_BYTES 256
#define PATH_DEPTH 32

/* Names from a file up to the root of its file system, each ended by a zero. */
struct walked_path {
	u32 bytes;
	u32 whole; /* it reaches up to the root */
	u8 names[PATH_BYTES + NAME_BYTES];
};

struct file_event {
	u32 kind;
	u32 unused;
	struct file_key key;
	struct file_slot slot;
	u32 process;
	s32 descriptor;
	struct walked_path path;
};

struct block_event {
	u32 kind;
	u32 device;
	u64 issue_ns;
	u64 queue_ns;
	u64 device_ns;
	u64 sector;
	u32 bytes;
	u32 operation;
	u32 process;
	u32 known_by; /* the number by which the device was found: its own, or that of a partition */
};

#define NAME_PATH_BYTES 1024

struct name_event {
	u32 kind;
	u32 code;
	u32 process;
	s32 folder_from;
	s32 folder_to;
	u32 unused;
	u8 from[NAME_PATH_BYTES];
	u8 to[NAME_PATH_BYTES];
};

/* A folder that a name begins at. */
struct folder {
	u32 device;
	u32 unused;
	struct walked_path path; /* empty where the name is a whole path */
};

/* A change of names that are no whole paths. */
struct name_in_folder_event {
	struct name_event name;
	struct folder from;
	struct folder to;
};

/* Totals of a file and an operation. Latencies: four parts to a power of two; sizes and distances:
 * whole powers. */
#define LATENCY_BUCKETS 168
#define SIZE_BUCKETS 41
#define SEEK_BUCKETS 48

struct total_key {
	u32 file;
	u32 operation;
};

struct total {
	u64 calls;
	u64 bytes;
	u64 errors;
	u64 latency_sum_ns;
	u64 sequential;
	u64 latency[LATENCY_BUCKETS];
	u64 size[SIZE_BUCKETS];
	u64 forward[SEEK_BUCKETS];
	u64 backward[SEEK_BUCKETS];
};

/* Allocated beforehand: values of this size cannot be got while a call is under way. How many there
 * are is set when the object is opened. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct total_key);
	__type(value, struct total);
} totals SEC(".maps");

/* A value of zeros to start from: it is too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct total);
} empty_total SEC(".maps");

#define ENDS 65536

/* One more than where the last call of a file and operation ended; 0: there was none. By the lower half
 * of the file's number: as many files as have a slot have a place. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ENDS * OPERATIONS);
	__type(key, u32);
	__type(value, u64);
} ends SEC(".maps");

#define ALWAYS (~0ull)

/* Block devices that are looked at, and until when. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u64);
} devices SEC(".maps");

/* Never used: so the compiler describes these layouts, and a test can compare them. */
union {
	struct call_event call;
	struct file_event file;
	struct block_event block;
	struct name_in_folder_event name;
} *layouts;

static __always_inline void count(u32 counter)
{
	u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		*value += 1;
}

/* Counts what was lost of a file or a device; for everybody where there is no room to tell. */
static __noinline void count_lost(u32 counter, u32 number)
{
	struct loss_key key = { .counter = counter, .number = number };
	u64 *value, zero = 0;

	value = bpf_map_lookup_elem(&losses, &key);
	if (!value) {
		bpf_map_update_elem(&losses, &key, &zero, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&losses, &key);
	}
	if (value)
		__sync_fetch_and_add(value, 1);
	else
		count(counter);
}

static __always_inline u32 current_process(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

static __always_inline bool is_traced(u32 process)
{
	u32 *value = bpf_map_lookup_elem(&processes, &process);

	return value && *value == TRACED;
}

/* The reader looks by itself many times a second; it is woken only when the buffer fills up before:
 * once, as the filling passes a mark. */
#define MARK_BYTES 4096

static __always_inline u64 wakeup(void)
{
	u64 beyond = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) - settings.wake_bytes;

	return beyond < MARK_BYTES ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* While the reader waits for a CPU, what may be of no use must not take the room of what is wanted. So
 * requests of processes that are not traced go in as long as two quarters are not full, calls on files
 * without a verdict as long as three are not; the last one is for calls on traced files, and questions. */
enum { FOR_OTHERS = 2, FOR_PENDING = 3 };

static __always_inline bool has_room(u32 quarters)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < quarters * settings.wake_bytes;
}

#endif
