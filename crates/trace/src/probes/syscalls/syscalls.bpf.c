/* System calls by the two tracepoints that all of them pass. They do not need tracefs, and a call of another
 * process costs one lookup.
 *
 * Timed from the entry of the system call to its exit, without the probes.
 * Missed: calls of 32-bit programs, and a descriptor that another thread replaces before the kernel looks it
 * up. */
#include "syscalls.bpf.h"

SEC("tp_btf/sys_enter")
int syscall_enter(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u8 code = code_of(ctx[1]);

	if (!code)
		return 0;
	return enter_syscall(code, SYSCALL_0(regs), SYSCALL_1(regs), SYSCALL_2(regs), SYSCALL_3(regs));
}

SEC("tp_btf/sys_exit")
int syscall_exit(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u8 code = code_of(SYSCALL_NUMBER(regs));

	if (!code)
		return 0;
	return exit_syscall(code, ctx[1]);
}
