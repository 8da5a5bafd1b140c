/* Kernel structures that the probes read. CO-RE finds the offsets of fields at load time, so only names and
 * nesting matter here, not order or completeness. */
#ifndef DYNO_KERNEL_BPF_H
#define DYNO_KERNEL_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;

typedef __u8 u8;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;

/* Numbers of linux/bpf.h, which never change. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
	struct hlist_node **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct qstr {
	u32 hash;
	u32 len;
	const unsigned char *name;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	u32 i_rdev;
	unsigned int i_generation;
	unsigned long i_ino;
	long long i_size;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	unsigned int f_flags;
	long long f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* Working directory of a process, where relative names begin. */
struct fs_struct {
	struct path pwd;
};

struct address_space {
	struct inode *host;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct thread_info {
	u32 status;
};

/* The kernel's I/O accounting of a thread. */
struct task_io_accounting {
	u64 read_bytes;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid;
	int tgid;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct task_io_accounting ioac;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	u32 bd_dev;
	struct gendisk *bd_disk;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct block_device *part;
};

struct kiocb {
	long long ki_pos;
};

/* The operation's own part of an io_uring request is at its start. */
struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len;
};

struct io_cqe {
	union {
		int fd;
		int res;
	};
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u64 flags;
	struct io_cqe cqe;
};

struct io_uring_cqe {
	s32 res;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#else
#error "the probes know the registers of x86-64 and arm64 only"
#endif

#pragma clang attribute pop

/* Arguments and result of a system call and of a kernel function. */
#if defined(__TARGET_ARCH_x86)
#define SYSCALL_NUMBER(context) ((context)->orig_ax)
#define SYSCALL_0(context) ((context)->di)
#define SYSCALL_1(context) ((context)->si)
#define SYSCALL_2(context) ((context)->dx)
#define SYSCALL_3(context) ((context)->r10)
#define FUNCTION_0(context) ((context)->di)
#define FUNCTION_1(context) ((context)->si)
#define FUNCTION_2(context) ((context)->dx)
#define FUNCTION_3(context) ((context)->cx)
#define FUNCTION_RESULT(context) ((context)->ax)
#else
#define SYSCALL_NUMBER(context) ((context)->syscallno)
#define SYSCALL_0(context) ((context)->orig_x0)
#define SYSCALL_1(context) ((context)->regs[1])
#define SYSCALL_2(context) ((context)->regs[2])
#define SYSCALL_3(context) ((context)->regs[3])
#define FUNCTION_0(context) ((context)->regs[0])
#define FUNCTION_1(context) ((context)->regs[1])
#define FUNCTION_2(context) ((context)->regs[2])
#define FUNCTION_3(context) ((context)->regs[3])
#define FUNCTION_RESULT(context) ((context)->regs[0])
#endif

/* Reads through any pointer as fast as kernel code, since Linux 6.2. Older kernels copy field by field. */
extern void *bpf_rdonly_cast(const void *pointer, u32 type) __ksym __weak;

#define CAST(type, pointer) ((type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(type)))
#define HAS_CAST (bpf_ksym_exists(bpf_rdonly_cast))

#endif
