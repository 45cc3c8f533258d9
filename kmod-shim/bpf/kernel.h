/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The fields of the kernel's structures, and the processor's registers, that the programs read. */
#ifndef VARID_BPF_KERNEL_H
#define VARID_BPF_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "varid_record.h"

// The kernel's types, reduced to the fields that are read. Offsets are relocated at load time.
#define KERNEL_TYPE __attribute__((preserve_access_index))

struct upid {
	int nr;
} KERNEL_TYPE;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL_TYPE;

#if defined(__TARGET_ARCH_x86)
struct desc_struct {
	__u64 bits; // as the processor has them; only the array's address is used
};

struct thread_struct {
	struct desc_struct tls_array[3];
	unsigned long fsbase;
} KERNEL_TYPE;

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define CTX_IN_USER(regs) (((regs)->cs & 3) == 3)
#define USER32_CS 0x23
#define CTX_COMPAT(regs) (((regs)->cs & 0xffff) == USER32_CS)
#elif defined(__TARGET_ARCH_arm64)
struct cpu_context_uw {
	unsigned long tp_value;
} KERNEL_TYPE;

struct thread_struct {
	struct cpu_context_uw uw;
} KERNEL_TYPE;

struct pt_regs {
	unsigned long regs[31], sp, pc, pstate;
};
#define CTX_IN_USER(regs) (((regs)->pstate & 0xf) == 0)
#define CTX_COMPAT(regs) ((regs)->pstate & 0x10) // PSR_MODE32_BIT
#else
#error "the shim knows the registers of x86 and arm64"
#endif

struct task_struct {
	unsigned int __state;
	int pid;
	int tgid;
	struct pid *thread_pid;
	struct task_struct *real_parent;
	struct thread_struct thread;
	void *mm;
	unsigned long sas_ss_sp; // its alternate signal stack
	unsigned long sas_ss_size;
} KERNEL_TYPE;

struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#if defined(__TARGET_ARCH_x86)
#define COPY_REGS(to, from)                            \
	do {                                           \
		if (CTX_COMPAT(from)) {                        \
			(to)[VARID_I386_EDX] = (from)->dx;     \
			(to)[VARID_I386_EBX] = (from)->bx;     \
			(to)[VARID_I386_EBP] = (from)->bp;     \
			(to)[VARID_I386_ESI] = (from)->si;     \
			(to)[VARID_I386_EDI] = (from)->di;     \
			(to)[VARID_I386_ESP] = (from)->sp;     \
			(to)[VARID_I386_EIP] = (from)->ip;     \
			break;                                 \
		}                                              \
		(to)[VARID_X86_RAX] = (from)->ax;      \
		(to)[VARID_X86_RBX] = (from)->bx;      \
		(to)[VARID_X86_RBP] = (from)->bp;      \
		(to)[VARID_X86_R12] = (from)->r12;     \
		(to)[VARID_X86_R13] = (from)->r13;     \
		(to)[VARID_X86_R14] = (from)->r14;     \
		(to)[VARID_X86_R15] = (from)->r15;     \
		(to)[VARID_X86_RSP] = (from)->sp;      \
		(to)[VARID_X86_RIP] = (from)->ip;      \
		(to)[VARID_X86_R9] = (from)->r9;       \
		(to)[VARID_X86_R11] = (from)->r11;     \
	} while (0)
#define REG_SP(flags) ((flags) & VARID_COMPAT ? VARID_I386_ESP : VARID_X86_RSP)
#define REG_IP(flags) ((flags) & VARID_COMPAT ? VARID_I386_EIP : VARID_X86_RIP)
#define REG_FP VARID_X86_RBP
#define REG_LINK(flags) VARID_X86_RIP // no link register: each frame's return address is on the stack
#define CTX_IP(regs) ((regs)->ip)
#define CTX_ARGUMENT_1(regs) ((regs)->di)
#define CTX_ARGUMENT_3(regs) ((regs)->dx)

// The gs base of a 32-bit process: both C libraries use the first of the thread's TLS segments for
// it.
static __always_inline __u64 thread_pointer(struct task_struct *task, __u32 flags)
{
	__u64 segment = 0;

	if (!(flags & VARID_COMPAT))
		return task->thread.fsbase;
	bpf_probe_read_kernel(&segment, sizeof(segment), &task->thread.tls_array);
	return (segment >> 16 & 0xffffff) | (segment >> 32 & 0xff000000);
}
#else
// r0 to r14 of a 32-bit process are the first registers.
#define COPY_REGS(to, from)                                                   \
	do {                                                                  \
		if (CTX_COMPAT(from)) {                                       \
			_Pragma("unroll") for (int i = 0; i < 8; i++)         \
				(to)[VARID_ARM_R4 + i] = (from)->regs[4 + i]; \
			(to)[VARID_ARM_LR] = (from)->regs[14];                \
			(to)[VARID_ARM_SP] = (from)->regs[13];                \
			(to)[VARID_ARM_PC] = (from)->pc;                      \
			break;                                                \
		}                                                             \
		_Pragma("unroll") for (int i = 0; i < 12; i++)                \
			(to)[VARID_ARM64_X19 + i] = (from)->regs[19 + i];     \
		(to)[VARID_ARM64_X12] = (from)->regs[12];                     \
		(to)[VARID_ARM64_X13] = (from)->regs[13];                     \
		(to)[VARID_ARM64_SP] = (from)->sp;                            \
		(to)[VARID_ARM64_PC] = (from)->pc;                            \
	} while (0)
#define REG_SP(flags) ((flags) & VARID_COMPAT ? VARID_ARM_SP : VARID_ARM64_SP)
#define REG_IP(flags) ((flags) & VARID_COMPAT ? VARID_ARM_PC : VARID_ARM64_PC)
#define REG_FP (VARID_ARM64_X19 + 10)
#define REG_LINK(flags) ((flags) & VARID_COMPAT ? VARID_ARM_LR : VARID_ARM64_X19 + 11)
#define CTX_IP(regs) ((regs)->pc)
#define CTX_ARGUMENT_1(context) ((context)->regs[0])
#define CTX_ARGUMENT_3(context) ((context)->regs[2])

static __always_inline __u64 thread_pointer(struct task_struct *task, __u32 flags)
{
	return task->thread.uw.tp_value;
}
#endif

// The thread's id in its own process's pid namespace.
static __always_inline __u32 tid_inside(struct task_struct *task, __u32 tid, __u32 flags)
{
	struct pid *pid;
	__u32 level;
	int nr = 0;

	if (!(flags & VARID_TARGET_NAMESPACED))
		return tid;
	pid = BPF_CORE_READ(task, thread_pid);
	level = BPF_CORE_READ(pid, level);
	bpf_core_read(&nr, sizeof(nr), &pid->numbers[level & 31].nr);
	return nr;
}

#endif
