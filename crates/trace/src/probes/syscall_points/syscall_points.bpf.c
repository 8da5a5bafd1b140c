/* System calls by a pair of tracepoints for each call, as tracefs lists them, for kernels that refuse the
 * tracepoints of all system calls. One program handles all of them.
 *
 * Times and limits are those of `syscalls`. */
#include "../syscalls/syscalls.bpf.h"

struct point_enter {
	u64 common;
	u64 number;
	u64 arguments[6];
};

struct point_exit {
	u64 common;
	u64 number;
	s64 returned;
};

/* Copies the arguments: a program that reads them directly cannot be attached to calls with fewer. */
SEC("tracepoint")
int point_enter(void *ctx)
{
	struct point_enter call = {};
	u8 code;

	bpf_probe_read_kernel(&call, sizeof(call), ctx);
	code = code_of((u32)call.number);
	if (!code)
		return 0;
	return enter_syscall(code, call.arguments[0], call.arguments[1], call.arguments[2], call.arguments[3]);
}

SEC("tracepoint")
int point_exit(struct point_exit *ctx)
{
	u8 code = code_of((u32)ctx->number);

	if (!code)
		return 0;
	return exit_syscall(code, ctx->returned);
}
