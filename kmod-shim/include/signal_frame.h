/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What did a signal interrupt whose handler runs on an alternate stack (sigaltstack)? The kernel saves the interrupted
 * registers in a ucontext_t on that stack, next to the stack's own address and size.
 *
 * No register leads to the ucontext_t: the handler's unwind information does. It lies at a distance from the end of the stack that
 * depends on the processor's floating-point state, so it is searched for, and the distance is tried first at the next sample.
 * A nested handler has a ucontext_t of its own further down: the highest one is that of the ordinary stack.
 */
#ifndef VARID_SIGNAL_FRAME_H
#define VARID_SIGNAL_FRAME_H

#include "varid_record.h"

#if defined(__TARGET_ARCH_x86) || defined(CONFIG_X86_64)
#define VARID_HAS_SIGNAL_FRAME 1
#define VARID_UCONTEXT_BYTES 176 /* of a ucontext_t up to the last register that is read */
/* struct rt_sigframe: what an unwinder reads ends with the registers. */
#define VARID_SIGNAL_STACK_END(ucontext, end) ((ucontext) + VARID_UCONTEXT_BYTES)
#elif defined(__TARGET_ARCH_arm64) || defined(CONFIG_ARM64)
#define VARID_HAS_SIGNAL_FRAME 1
#define VARID_UCONTEXT_BYTES 448
/* The frame record to which x29 leads stands above struct rt_sigframe. */
#define VARID_SIGNAL_STACK_END(ucontext, end) (end)
#else
#define VARID_HAS_SIGNAL_FRAME 0
#endif

#define VARID_UCONTEXT_ALIGN 16
/* uc_stack, of a 64-bit ucontext_t. */
#define VARID_UCONTEXT_STACK 16
#define VARID_UCONTEXT_STACK_SIZE 32

/* Whether a thread whose alternate stack is at `stack` runs on it: the kernel's on_sig_stack(). */
static inline __attribute__((always_inline)) int varid_on_signal_stack(varid_u64 sp, varid_u64 stack, varid_u64 size)
{
	return sp > stack && sp - stack <= size;
}

#if VARID_HAS_SIGNAL_FRAME
/* Whether the kernel has saved the place of this alternate stack at `ucontext`, of which 40 bytes can be read. */
static inline __attribute__((always_inline)) int
varid_is_ucontext(const varid_u8 *ucontext, varid_u64 stack, varid_u64 size)
{
	/* One comparison, which is one branch less for a verifier to follow at each place. */
	return !((*(const varid_u64 *)(ucontext + VARID_UCONTEXT_STACK) ^ stack) |
		 (*(const varid_u64 *)(ucontext + VARID_UCONTEXT_STACK_SIZE) ^ size));
}

/* The registers of a record from VARID_UCONTEXT_BYTES of a ucontext_t. */
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
	regs[VARID_X86_RSP] = saved[15];
	regs[VARID_X86_RIP] = saved[16];
#else
	/* struct sigcontext, behind fault_address: x0 to x30, sp, pc */
	const varid_u64 *saved = (const varid_u64 *)(ucontext + 184);
	varid_u32 i;

#ifdef __clang__
#pragma unroll
#endif
	for (i = 0; i < 12; i++)
		regs[VARID_ARM64_X19 + i] = saved[19 + i];
	regs[VARID_ARM64_SP] = saved[31];
	regs[VARID_ARM64_PC] = saved[32];
#endif
}
#endif

#endif
