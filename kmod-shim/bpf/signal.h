/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Where does the walk begin while a signal's handler runs on an alternate stack? With the registers that the signal interrupted. */
#ifndef VARID_BPF_SIGNAL_H
#define VARID_BPF_SIGNAL_H

#include "frames.h"
#include "signal_frame.h"

#define UCONTEXTS (COPY_MAX / VARID_UCONTEXT_ALIGN) // places where one is searched for

// The highest ucontext_t of the alternate stack `stack` in the last COPY_MAX bytes of it, 0: there is none. A function of its own: the
// verifier follows its loop once.
__noinline __u64 search_ucontext(struct scratch *s, __u64 stack, __u64 size)
{
	const __u64 end = (stack + size) & ~(__u64)(VARID_UCONTEXT_ALIGN - 1);
	__u64 from, len;

	if (!s)
		return 0;
	from = s->record.stack_addr & ~(__u64)(VARID_UCONTEXT_ALIGN - 1);
	if (from + COPY_MAX < end)
		from = end - COPY_MAX;
	len = end - from;
	if (len > COPY_MAX || len < VARID_UCONTEXT_BYTES || !copied(s, from, len))
		return 0;
	len -= VARID_UCONTEXT_BYTES;
	for (__u32 i = 0; i < UCONTEXTS; i++) {
		const __u64 below = i * VARID_UCONTEXT_ALIGN;

		if (below > len)
			break;
		if (varid_is_ucontext(s->copy + ((len - below) & (COPY_MAX - VARID_UCONTEXT_ALIGN)), stack, size))
			return from + len - below;
	}
	return 0;
}

// Takes the registers that a signal interrupted for those of the record, which are kept. Whether they have been found, the record says.
__noinline int enter_interrupted(struct scratch *s, __u64 stack, __u64 size)
{
	const __u64 end = stack + size;
	__u64 at;

	if (!s)
		return 0;
	at = end - s->ucontext_below;
	if (!s->ucontext_below || at < s->record.stack_addr || !copied(s, at, VARID_UCONTEXT_BYTES) ||
	    !varid_is_ucontext(s->copy, stack, size)) {
		at = search_ucontext(s, stack, size);
		if (!at || !copied(s, at, VARID_UCONTEXT_BYTES) || !varid_is_ucontext(s->copy, stack, size))
			return 0;
		s->ucontext_below = end - at;
	}
	__builtin_memcpy(s->handler_regs, s->record.regs, sizeof(s->handler_regs));
	varid_interrupted_registers(s->copy, s->record.regs);
	s->record.interrupted_addr = VARID_ADDRESS(s->record.regs[REG_SP(0)]) - VARID_RED_ZONE;
	s->signal_stack_end = VARID_SIGNAL_STACK_END(at, end);
	s->record.flags |= VARID_INTERRUPTED;
	return 0;
}

// Gives the record its own registers back. Its instruction is native code's.
static __always_inline void leave_interrupted(struct scratch *s)
{
	__builtin_memcpy(s->record.regs, s->handler_regs, sizeof(s->handler_regs));
	s->record.flags &= ~VARID_IN_BODY;
}

#endif
