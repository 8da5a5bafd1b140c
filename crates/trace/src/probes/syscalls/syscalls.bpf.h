/* A system call, however it was seen: what its arguments mean follows from its code. */
#ifndef DYNO_SYSCALLS_BPF_H
#define DYNO_SYSCALLS_BPF_H

#include "../calls/calls.bpf.h"
#include "../names/names.bpf.h"

static __always_inline u8 code_of(u64 number)
{
	return number < SYSCALLS ? settings.syscalls[number] : 0;
}

/* Linux AIO: calls are only counted, but the first file is made known, so that the requests to its
 * device are seen. */
#define AIO_DESCRIPTOR 20 /* its place in `struct iocb` of linux/aio_abi.h */

static __always_inline void know_aio_file(struct task_struct *task, u64 list)
{
	u64 first = 0;
	u32 descriptor = 0;
	struct file *file;

	if (bpf_probe_read_user(&first, sizeof(first), (void *)list) ||
	    bpf_probe_read_user(&descriptor, sizeof(descriptor), (void *)first + AIO_DESCRIPTOR))
		return;
	file = file_of(task, descriptor);
	if (file)
		traced_file(inode_of(file), file, descriptor);
}

static __always_inline int enter_other(struct task_struct *task, struct thread_state *state, u8 code,
				       u64 first, u64 second, u64 third, u64 fourth)
{
	if (code & CODE_NAME) {
		begin_name(state, code, first, second, third, fourth);
	} else if (code & CODE_OPERATION) {
		count(UNSEEN_COPIES);
	} else {
		count(UNSEEN_AIO);
		know_aio_file(task, third);
	}
	return 0;
}

static __always_inline int enter_syscall(u8 code, u64 first, u64 second, u64 third, u64 fourth)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *state = traced_thread(task);
	struct file *file;
	u64 requested = third;
	s64 offset = -1;

	if (!state)
		return 0;
	/* A thread that enters a call is in no other: the end of one before was not seen. */
	state->start_ns = 0;
	if (settings.compat_bit && task->thread_info.status & settings.compat_bit)
		return 0;
	if (!(code & CODE_CALL))
		return enter_other(task, state, code, first, second, third, fourth);
	file = file_of(task, first);
	if (!file)
		return 0;
	if (code & CODE_VECTOR)
		requested = vector_bytes(second, third);
	if (code & CODE_POSITION)
		offset = fourth;
	if ((code & CODE_OPERATION) == SYNC) {
		offset = code & CODE_RANGE ? second : -1;
		requested = code & CODE_RANGE ? third : 0;
	}
	begin_call(state, file, first, code & CODE_OPERATION, requested, offset);
	return 0;
}

static __always_inline int exit_syscall(u8 code, s64 returned)
{
	struct thread_state *state = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

	if (!state)
		return 0;
	if (code & CODE_NAME)
		end_name(state, returned);
	else if (code & CODE_CALL && state->start_ns && state->operation == (code & CODE_OPERATION))
		end_call(state, bpf_ktime_get_ns(), returned);
	state->start_ns = 0;
	return 0;
}

#endif
