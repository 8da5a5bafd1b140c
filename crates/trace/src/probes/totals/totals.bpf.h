/* Totals by file and operation, made in the kernel where no events are wanted. */
#ifndef DYNO_TOTALS_BPF_H
#define DYNO_TOTALS_BPF_H

#include "../shared.bpf.h"

static __always_inline u32 power_of(u64 value)
{
	u32 power = 0;

	if (value >> 32) { value >>= 32; power += 32; }
	if (value >> 16) { value >>= 16; power += 16; }
	if (value >> 8) { value >>= 8; power += 8; }
	if (value >> 4) { value >>= 4; power += 4; }
	if (value >> 2) { value >>= 2; power += 2; }
	return power + (value >> 1);
}

/* Bucket 0 holds 0, bucket i what is at least 2^(i-1) and less than 2^i. */
static __always_inline u32 whole_bucket(u64 value, u32 buckets)
{
	u32 bucket = value ? power_of(value) + 1 : 0;

	return bucket < buckets ? bucket : buckets - 1;
}

/* As above, each power cut into four. */
static __always_inline u32 quarter_bucket(u64 value, u32 buckets)
{
	u32 bucket = value;

	if (value >= 4) {
		u32 shift = power_of(value) - 2;

		bucket = (shift + 1) * 4 + ((value >> (shift & 63)) & 3);
	}
	return bucket < buckets ? bucket : buckets - 1;
}

struct call {
	u64 start_ns;
	u64 latency_ns;
	u64 requested;
	s64 offset;
	s64 returned;
	u32 file;
	u32 verdict; /* on the file: pending or allowed */
	u32 operation;
	u32 process;
	u32 thread;
	s64 fetched; /* -1: not known */
};

static __always_inline struct total *total_of(struct call *call)
{
	struct total_key key = { .file = call->file, .operation = call->operation };
	struct total *total = bpf_map_lookup_elem(&totals, &key);
	u32 zero = 0;
	struct total *empty;

	if (total)
		return total;
	empty = bpf_map_lookup_elem(&empty_total, &zero);
	if (empty)
		bpf_map_update_elem(&totals, &key, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&totals, &key);
}

static __always_inline void add_to_total(struct call *call)
{
	struct total *total = total_of(call);
	u32 place = call->file % ENDS * OPERATIONS + call->operation;
	u64 *end = bpf_map_lookup_elem(&ends, &place);
	u32 bucket;

	if (!total || !end) {
		count_lost(LOST_TOTALS, call->file);
		return;
	}
	total->calls += 1;
	total->latency_sum_ns += call->latency_ns;
	bucket = quarter_bucket(call->latency_ns, LATENCY_BUCKETS);
	if (bucket < LATENCY_BUCKETS)
		total->latency[bucket] += 1;
	if (call->returned < 0) {
		total->errors += 1;
	} else {
		total->bytes += call->returned;
		bucket = whole_bucket(call->returned, SIZE_BUCKETS);
		if (bucket < SIZE_BUCKETS)
			total->size[bucket] += 1;
	}
	if (call->offset < 0)
		return;
	if (*end) {
		s64 distance = call->offset - (s64)(*end - 1);

		if (distance == 0) {
			total->sequential += 1;
		} else if (distance > 0) {
			bucket = whole_bucket(distance, SEEK_BUCKETS);
			if (bucket < SEEK_BUCKETS)
				total->forward[bucket] += 1;
		} else {
			bucket = whole_bucket(-distance, SEEK_BUCKETS);
			if (bucket < SEEK_BUCKETS)
				total->backward[bucket] += 1;
		}
	}
	*end = call->offset + (call->returned > 0 ? call->returned : 0) + 1;
}

#endif
