/* Settings, maps and events that the probes share with each other and with user space. The layouts equal
 * those of `ebpf/layout.rs`; a test compares their sizes. */
#ifndef DYNO_SHARED_BPF_H
#define DYNO_SHARED_BPF_H

#include "kernel.bpf.h"

enum operation { READ, WRITE, SYNC, FAULT, OPERATIONS };

/* Flags of a system call; the lowest bits are its operation. */
enum {
	CODE_OPERATION = 0x03,
	CODE_VECTOR = 0x04,   /* its second argument is a vector of buffers */
	CODE_POSITION = 0x08, /* its fourth argument is the position */
	CODE_RANGE = 0x10,    /* sync of a range: position and length are the second and third */
	CODE_CALL = 0x20,
	CODE_NAME = 0x40,   /* changes a name; the lowest bits say how */
	CODE_UNSEEN = 0x80, /* moves data and is only counted; the lowest bits say how */
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
	u32 first_verdict; /* of a new file */
	u32 page_shift;
	u32 compat_bit; /* of thread_info.status: the call is one of 32 bits */
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
	u32 device; /* major << 20 | minor, as in the kernel */
	u32 generation;
};

enum { PENDING, ALLOWED, DENIED };

struct file_slot {
	u32 id;
	u32 verdict;
	u64 name;   /* the name at the last verdict: see `name_of` */
	u64 met_ns; /* when user space was last asked for a verdict */
	u32 asked;  /* number of requests for a verdict */
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

/* State of a thread. */
struct thread_state {
	u32 traced; /* belongs to a traced process */
	u32 known_id;
	/* The file of its last call: most calls are on the same file as the one before. */
	u64 known_inode;
	u64 known_system;
	u64 known_number;
	u32 known_generation;
	u32 verdict; /* on the file, at the start of the call */
	u64 start_ns; /* 0: no call is in progress */
	u64 requested;
	s64 offset; /* -1: the position of the open file */
	u64 file;
	u32 id;
	u32 operation;
	u64 fetched; /* bytes that the thread had requested from devices before */
	u64 fault_fetched;
	u64 fault_start_ns; /* 0: no page fault is in progress */
	u64 fault_offset;
	u32 fault_id;
	u32 fault_verdict;
	u32 name_code; /* of a call that changes a name; 0: none is in progress */
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

/* Losses are counted by file or device, because only user space knows which of them it wants. */
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

/* Names from a file up to the root of its file system, each terminated by zero. */
struct walked_path {
	u32 bytes;
	u32 whole; /* whether it reaches the root */
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
	u32 known_by; /* number by which the device was found: its own or a partition's */
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

/* Folder of a relative name. */
struct folder {
	u32 device;
	u32 unused;
	struct walked_path path; /* empty for an absolute name */
};

/* A change of relative names. */
struct name_in_folder_event {
	struct name_event name;
	struct folder from;
	struct folder to;
};

/* Totals of a file and an operation. Buckets of latencies: four per power of two; of sizes and distances:
 * one per power of two. */
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

/* Preallocated, because values of this size cannot be allocated during a call. Their number is set when the
 * object is opened. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct total_key);
	__type(value, struct total);
} totals SEC(".maps");

/* Initial value, all zeros, which is too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct total);
} empty_total SEC(".maps");

#define ENDS 65536

/* End of the last call of a file and operation, plus 1; 0 without one. The key is the lower half of the
 * file's number, so every file with a slot has an entry. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ENDS * OPERATIONS);
	__type(key, u32);
	__type(value, u64);
} ends SEC(".maps");

#define ALWAYS (~0ull)

/* Traced block devices, and until when. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u64);
} devices SEC(".maps");

/* Unused: makes the compiler emit these layouts, which a test compares. */
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

/* Counts a loss of a file or device, or of all of them if the map is full. */
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

/* The reader polls many times a second. It is woken only if the buffer fills faster: once, when its fill
 * level passes a mark. */
#define MARK_BYTES 4096

static __always_inline u64 wakeup(void)
{
	u64 beyond = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) - settings.wake_bytes;

	return beyond < MARK_BYTES ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* While the reader waits for a CPU, events that may be useless must not displace useful ones. Requests of
 * untraced processes may fill half of the buffer, calls on files without a verdict three quarters; the last
 * quarter is for calls on traced files and for requests of verdicts. */
enum { FOR_OTHERS = 2, FOR_PENDING = 3 };

static __always_inline bool has_room(u32 quarters)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < quarters * settings.wake_bytes;
}

#endif
