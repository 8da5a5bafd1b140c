/* Renaming and deleting by traced processes: the names as they were given, after the call succeeded, and
 * the folders that they begin at, as the process may have gone when user space reads it. What other
 * processes do to the names is found by user space, which looks at the end.
 *
 * An event is 2 KB in the buffer, and 7 KB if a name is no whole path.
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

static __always_inline bool is_in_folder(u64 name)
{
	u8 first = '/';

	return name && !bpf_probe_read_user(&first, sizeof(first), (void *)name) && first != '/';
}

static __always_inline void write_folder(struct folder *folder, u64 name, s32 descriptor)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct dentry *dentry = 0;
	struct file *file;

	if (is_in_folder(name) && descriptor == CURRENT_FOLDER) {
		dentry = BPF_CORE_READ(task, fs, pwd.dentry);
	} else if (is_in_folder(name)) {
		file = file_of(task, descriptor);
		dentry = file ? BPF_CORE_READ(file, f_path.dentry) : 0;
	}
	folder->device = dentry ? BPF_CORE_READ(dentry, d_inode, i_sb, s_dev) : 0;
	folder->unused = 0;
	write_path(&folder->path, dentry);
}

static __always_inline void write_names(struct name_event *event, struct thread_state *state)
{
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
}

static __always_inline bool send_names(struct thread_state *state)
{
	struct name_in_folder_event *in_folder;
	struct name_event *event;

	if (is_in_folder(state->name_from) || is_in_folder(state->name_to)) {
		in_folder = bpf_ringbuf_reserve(&events, sizeof(*in_folder), 0);
		if (!in_folder)
			return 0;
		write_names(&in_folder->name, state);
		write_folder(&in_folder->from, state->name_from, state->folder_from);
		write_folder(&in_folder->to, state->name_to, state->folder_to);
		bpf_ringbuf_submit(in_folder, BPF_RB_FORCE_WAKEUP);
		return 1;
	}
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return 0;
	write_names(event, state);
	bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
	return 1;
}

static __always_inline void end_name(struct thread_state *state, s64 returned)
{
	if (state->name_code && !returned && !send_names(state))
		count(LOST_NAMES);
	state->name_code = 0;
}

#endif
