/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Finds the registers that a signal interrupted whose handler runs on an alternate stack (sigaltstack). The kernel saves them in a
 * ucontext_t on that stack, together with the stack's address and size.
 *
 * No register points to the ucontext_t; an unwinder finds it by the handler's unwind information. Its distance from the end of the
 * stack depends on the processor's floating-point state. So it is searched for, and its distance is tried first at the next
 * sample. A nested handler has another ucontext_t at a lower address: the highest one has the registers of the ordinary stack.
 */
#ifndef VARID_SIGNAL_FRAME_H
#define VARID_SIGNAL_FRAME_H

#include "varid_record.h"

#if defined(__TARGET_ARCH_x86) || defined(CONFIG_X86_64)
#define VARID_HAS_SIGNAL_FRAME 1
#define VARID_UCONTEXT_BYTES 176 /* bytes of a ucontext_t up to the last register that is read */
/* struct rt_sigframe: an unwinder reads nothing above the registers. */
#define VARID_SIGNAL_STACK_END(ucontext, end) ((ucontext) + VARID_UCONTEXT_BYTES)
#elif defined(__TARGET_ARCH_arm64) || defined(CONFIG_ARM64)
#define VARID_HAS_SIGNAL_FRAME 1
#define VARID_UCONTEXT_BYTES 448
/* The frame record that x29 points to is above struct rt_sigframe. */
#define VARID_SIGNAL_STACK_END(ucontext, end) (end)
#else
#define VARID_HAS_SIGNAL_FRAME 0
#endif

#define VARID_UCONTEXT_ALIGN 16
/* uc_stack, of a 64-bit ucontext_t. */
#define VARID_UCONTEXT_STACK 16
#define VARID_UCONTEXT_STACK_SIZE 32

/* Returns nonzero if a thread with an alternate stack at `stack` runs on it, as the kernel's on_sig_stack() does. */
static inline __attribute__((always_inline)) int varid_on_signal_stack(varid_u64 sp, varid_u64 stack, varid_u64 size)
{
	return sp > stack && sp - stack <= size;
}

#if VARID_HAS_SIGNAL_FRAME
/* Returns nonzero if the 40 readable bytes at `ucontext` contain the address and size of this alternate stack. */
static inline __attribute__((always_inline)) int
varid_is_ucontext(const varid_u8 *ucontext, varid_u64 stack, varid_u64 size)
{
	/* A single comparison: one branch less at each place for the verifier to follow. */
	return !((*(const varid_u64 *)(ucontext + VARID_UCONTEXT_STACK) ^ stack) |
		 (*(const varid_u64 *)(ucontext + VARID_UCONTEXT_STACK_SIZE) ^ size));
}

/* Reads a record's registers from VARID_UCONTEXT_BYTES of a ucontext_t. */
static inline __attribute__((always_inline)) void
varid_interrupted_registers(const varid_u8 *ucontext, varid_u64 *regs)
{
#if defined(__TARGET_ARCH_x86) || defined(CONFIG_X86_64)
	/* struct sigcontext_64 */
	const varid_u64 *saved = (const varid_u64 *)(ucontext + 40);

	regs[VARID_X86_R9] = saved[1];
	regs[VARID_X86_R11] = saved[3];
	regs[VARID_X86_R12] = saved[4];
	regs[VARID_X86_R13] = saved[5];
	regs[VARID_X86_R14] = saved[6];
	regs[VARID_X86_R15] = saved[7];
	regs[VARID_X86_RBP] = saved[10];
	regs[VARID_X86_RBX] = saved[11];
	regs[VARID_X86_RAX] = saved[13];
	regs[VARID_X86_RSP] = saved[15];
	regs[VARID_X86_RIP] = saved[16];
#else
	/* struct sigcontext, after fault_address: x0 to x30, sp, pc */
	const varid_u64 *saved = (const varid_u64 *)(ucontext + 184);
	varid_u32 i;

#ifdef __clang__
#pragma unroll
#endif
	for (i = 0; i < 12; i++)
		regs[VARID_ARM64_X19 + i] = saved[19 + i];
	regs[VARID_ARM64_X12] = saved[12];
	regs[VARID_ARM64_X13] = saved[13];
	regs[VARID_ARM64_SP] = saved[31];
	regs[VARID_ARM64_PC] = saved[32];
#endif
}
#endif

#endif
