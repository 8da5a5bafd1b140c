/* Renaming and deleting by traced processes: the names as they were given, after the call succeeded.
 * What other processes do to the names is found by user space, which looks at the end.
 *
 * Missed: names longer than 1023 bytes, links. */
#ifndef DYNO_NAMES_BPF_H
#define DYNO_NAMES_BPF_H

#include "../calls/calls.bpf.h"

#define CURRENT_FOLDER (-100)

static __always_inline void begin_name(struct thread_state *state, u8 code, u64 first, u64 second,
				       u64 third, u64 fourth)
{
	state->name_code = code;
	state->folder_from = CURRENT_FOLDER;
	state->folder_to = CURRENT_FOLDER;
	state->name_to = 0;
	switch (code & CODE_OPERATION) {
	case NAME_RENAME:
		state->name_from = first;
		state->name_to = second;
		break;
	case NAME_RENAMEAT:
		state->folder_from = first;
		state->name_from = second;
		state->folder_to = third;
		state->name_to = fourth;
		break;
	case NAME_UNLINK:
		state->name_from = first;
		break;
	default:
		state->folder_from = first;
		state->name_from = second;
	}
}

static __always_inline void end_name(struct thread_state *state, s64 returned)
{
	struct name_event *event;

	if (!state->name_code)
		return;
	if (returned) {
		state->name_code = 0;
		return;
	}
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(LOST_NAMES);
		state->name_code = 0;
		return;
	}
	event->kind = EVENT_NAME;
	event->code = state->name_code & CODE_OPERATION;
	event->process = current_process();
	event->folder_from = state->folder_from;
	event->folder_to = state->folder_to;
	event->unused = 0;
	event->to[0] = 0;
	if (bpf_probe_read_user_str(event->from, NAME_PATH_BYTES, (void *)state->name_from) < 0)
		event->from[0] = 0;
	if (state->name_to && bpf_probe_read_user_str(event->to, NAME_PATH_BYTES, (void *)state->name_to) < 0)
		event->to[0] = 0;
	state->name_code = 0;
	bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
}

#endif
