/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The differences between architectures: registers and the thread pointer. */
#ifndef VARID_ARCH_H
#define VARID_ARCH_H

#include <linux/bitops.h>
#include <linux/elf-em.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/version.h>

#include "varid_record.h"

/* Clears the registers from `first` on, on a machine with fewer registers than a record has. */
static __always_inline void varid_no_registers_from(struct varid_record *record, int first)
{
	memset(record->regs + first, 0, (VARID_REGS - first) * sizeof(record->regs[0]));
}

/*
 * VARID_MACHINE         ELF e_machine of this kernel
 * VARID_SP, VARID_PC    indices of the stack pointer and the ip in a record's registers, by its flags
 * VARID_FP              index of the frame pointer register, by the flags; -1: none
 * struct varid_link     frame record at the frame pointer: caller's frame pointer, return address
 * VARID_LINK            address of the frame record, from the frame pointer
 * VARID_LR              index of the link register in a record
 * varid_return_address  strips pointer authentication
 * varid_perf_register   reads one of perf's registers of a user thread, by its bit
 * varid_take_registers  fills a record's registers, and sets the flags for their mode
 * varid_thread_pointer  reads the current thread pointer, by a record's flags
 */
#if !defined(CONFIG_ARM)
struct varid_link {
	u64 fp, lr;
};

#define VARID_LINK(fp) (fp)
#endif

#if defined(CONFIG_X86_64)
#include <asm/desc.h>
#include <asm/msr.h>

#define VARID_MACHINE EM_X86_64
#define VARID_SP(flags) ((flags) & VARID_COMPAT ? VARID_I386_ESP : VARID_X86_RSP)
#define VARID_LR(flags) VARID_X86_RIP /* no link register: return addresses are on the stack */
#define VARID_PC(flags) ((flags) & VARID_COMPAT ? VARID_I386_EIP : VARID_X86_RIP)

/* Frame records of a 32-bit process have 4-byte words. They are not followed on this architecture. */
#define VARID_FP(flags) ((flags) & VARID_COMPAT ? -1 : VARID_X86_RBP)
#define varid_return_address(word) (word)

static inline u64 varid_perf_register(const struct pt_regs *from, u32 bit)
{
	switch (bit) { /* enum perf_event_x86_regs */
	case 0: return from->ax;
	case 1: return from->bx;
	case 2: return from->cx;
	case 3: return from->dx;
	case 4: return from->si;
	case 5: return from->di;
	case 6: return from->bp;
	case 7: return from->sp;
	case 8: return from->ip;
	case 9: return from->flags;
	case 16: return from->r8;
	case 17: return from->r9;
	case 18: return from->r10;
	case 19: return from->r11;
	case 20: return from->r12;
	case 21: return from->r13;
	case 22: return from->r14;
	case 23: return from->r15;
	default: return 0;
	}
}

static inline void varid_take_registers(struct varid_record *record, const struct pt_regs *from)
{
	u64 *to = record->regs;

	if (from->cs == __USER32_CS) {
		record->flags |= VARID_COMPAT;
		to[VARID_I386_EDX] = from->dx;
		to[VARID_I386_EBX] = from->bx;
		to[VARID_I386_EBP] = from->bp;
		to[VARID_I386_ESI] = from->si;
		to[VARID_I386_EDI] = from->di;
		to[VARID_I386_ESP] = from->sp;
		to[VARID_I386_EIP] = from->ip;
		varid_no_registers_from(record, VARID_I386_COUNT);
		return;
	}
	to[VARID_X86_RAX] = from->ax;
	to[VARID_X86_RBX] = from->bx;
	to[VARID_X86_RBP] = from->bp;
	to[VARID_X86_R12] = from->r12;
	to[VARID_X86_R13] = from->r13;
	to[VARID_X86_R14] = from->r14;
	to[VARID_X86_R15] = from->r15;
	to[VARID_X86_RSP] = from->sp;
	to[VARID_X86_RIP] = from->ip;
	to[VARID_X86_R9] = from->r9;
	to[VARID_X86_R11] = from->r11;
	varid_no_registers_from(record, VARID_X86_COUNT);
}

static inline u64 varid_thread_pointer(u32 flags)
{
	unsigned long base;

	/* gs: both C libraries use the thread's first TLS segment. */
	if (flags & VARID_COMPAT)
		return get_desc_base(&current->thread.tls_array[0]);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	rdmsrq(MSR_FS_BASE, base);
#else
	rdmsrl(MSR_FS_BASE, base);
#endif
	return base;
}

#elif defined(CONFIG_ARM64)
#define VARID_MACHINE EM_AARCH64
#define VARID_SP(flags) ((flags) & VARID_COMPAT ? VARID_ARM_SP : VARID_ARM64_SP)
#define VARID_LR(flags) ((flags) & VARID_COMPAT ? VARID_ARM_LR : VARID_ARM64_X19 + 11)
#define VARID_PC(flags) ((flags) & VARID_COMPAT ? VARID_ARM_PC : VARID_ARM64_PC)

#define VARID_FP(flags) ((flags) & VARID_COMPAT ? -1 : VARID_ARM64_X19 + 10)

/* Authentication codes fill the bits from the address space's width up to the bit that selects kernel or user addresses. */
static inline u64 varid_return_address(u64 word)
{
	u64 tcr;

	asm("mrs %0, tcr_el1" : "=r" (tcr));
	return word & BIT_ULL(55) ? word : word & ~GENMASK_ULL(54, 64 - (tcr & 63));
}

/* For a 32-bit process, perf has sp, lr and pc twice: at their own indices and at the 64-bit ones. */
static inline u64 varid_perf_register(const struct pt_regs *from, u32 bit)
{
	if (compat_user_mode(from)) {
		switch (bit) {
		case 15: return from->pc;
		case 30: return from->regs[14];
		case 31: return from->regs[13];
		}
	}
	if (bit == 32)
		return from->pc;
	return bit == 31 ? from->sp : bit < 31 ? from->regs[bit] : 0;
}

static inline void varid_take_registers(struct varid_record *record, const struct pt_regs *from)
{
	u64 *to = record->regs;
	int i;

	if (compat_user_mode(from)) {
		record->flags |= VARID_COMPAT;
		for (i = 0; i < 8; i++)
			to[VARID_ARM_R4 + i] = from->regs[4 + i];
		to[VARID_ARM_LR] = from->regs[14];
		to[VARID_ARM_SP] = from->regs[13];
		to[VARID_ARM_PC] = from->pc;
		varid_no_registers_from(record, VARID_ARM_COUNT);
		return;
	}
	memcpy(&to[VARID_ARM64_X19], &from->regs[19], 12 * sizeof(*to));
	to[VARID_ARM64_X12] = from->regs[12];
	to[VARID_ARM64_X13] = from->regs[13];
	to[VARID_ARM64_SP] = from->sp;
	to[VARID_ARM64_PC] = from->pc;
	varid_no_registers_from(record, VARID_ARM64_COUNT);
}

static inline u64 varid_thread_pointer(u32 flags)
{
	u64 base;

	if (flags & VARID_COMPAT)
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 17, 0)
		return current->thread.uw.tp_value;
#else
		return current->thread.tp_value;
#endif
	asm volatile("mrs %0, tpidr_el0" : "=r" (base));
	return base;
}

#elif defined(CONFIG_ARM)
#define VARID_MACHINE EM_ARM
#define VARID_SP(flags) VARID_ARM_SP
#define VARID_LR(flags) VARID_ARM_LR
#define VARID_PC(flags) VARID_ARM_PC

/* Frame records of the old procedure call standard (gcc -mapcs-frame), as perf follows them. */
struct varid_link {
	u32 fp, sp, lr;
};

#define VARID_LINK(fp) ((fp) - sizeof(struct varid_link))

#define VARID_FP(flags) (VARID_ARM_R4 + 7)
#define varid_return_address(word) (word)

static inline u64 varid_perf_register(const struct pt_regs *from, u32 bit)
{
	return bit < 16 ? from->uregs[bit] : 0;
}

static inline void varid_take_registers(struct varid_record *record, const struct pt_regs *from)
{
	u64 *to = record->regs;
	int i;

	for (i = 0; i < 8; i++)
		to[VARID_ARM_R4 + i] = from->uregs[4 + i];
	to[VARID_ARM_LR] = from->ARM_lr;
	to[VARID_ARM_SP] = from->ARM_sp;
	to[VARID_ARM_PC] = from->ARM_pc;
	varid_no_registers_from(record, VARID_ARM_COUNT);
}

static inline u64 varid_thread_pointer(u32 flags)
{
	/* TPIDRURO is not used because later kernels store their own data in it. User code cannot write it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 11, 0)
	return current_thread_info()->tp_value[0];
#else
	return current_thread_info()->tp_value;
#endif
}

#else
#error "the module knows the registers of x86-64, arm64 and arm"
#endif

#endif
