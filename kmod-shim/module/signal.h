/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Finds the start of the walk while a signal handler runs on an alternate stack. Same as ../bpf/signal.h. */
#ifndef VARID_MODULE_SIGNAL_H
#define VARID_MODULE_SIGNAL_H

#include <linux/sched.h>

#include "frames.h"
#include "signal_frame.h"

#define SIGNAL_STACK_SEARCHED 16384 /* bytes below the end of an alternate stack */

#if VARID_HAS_SIGNAL_FRAME
/* Returns the highest ucontext_t in the last bytes of the alternate stack, not below `from`. 0 if there is none. */
static u64 search_ucontext(u64 from, u64 stack, u64 size)
{
	u8 start[VARID_UCONTEXT_STACK_SIZE + sizeof(u64)] __aligned(8);
	const u64 last = (stack + size - VARID_UCONTEXT_BYTES) & ~(u64)(VARID_UCONTEXT_ALIGN - 1);
	u64 places, place;

	from = max(from, stack + size - min_t(u64, size, SIGNAL_STACK_SEARCHED));
	if (stack + size < stack || last < from)
		return 0;
	places = (last - from) / VARID_UCONTEXT_ALIGN + 1;
	for (place = 0; place < places; place++) {
		const u64 at = last - place * VARID_UCONTEXT_ALIGN;

		if (!varid_copy(start, at, sizeof(start)) && varid_is_ucontext(start, stack, size))
			return at;
	}
	return 0;
}

/*
 * Replaces the record's registers by those that a signal interrupted, if its handler runs on an
 * alternate stack. Returns true if it did. 32-bit processes are not supported.
 */
static bool enter_interrupted(struct varid_scratch *s)
{
	struct varid_record *record = &s->record;
	const u64 stack = current->sas_ss_sp, size = current->sas_ss_size;
	u64 at = stack + size - s->ucontext_below;

	if (record->flags & VARID_COMPAT || size < VARID_UCONTEXT_BYTES ||
	    !varid_on_signal_stack(VARID_ADDRESS(record->regs[VARID_SP(record->flags)]), stack, size))
		return false;
	if (!s->ucontext_below || at < record->stack_addr || varid_copy(s->ucontext, at, sizeof(s->ucontext)) ||
	    !varid_is_ucontext(s->ucontext, stack, size)) {
		at = search_ucontext(record->stack_addr, stack, size);
		if (!at || varid_copy(s->ucontext, at, sizeof(s->ucontext)) || !varid_is_ucontext(s->ucontext, stack, size))
			return false;
		s->ucontext_below = stack + size - at;
	}
	memcpy(s->handler_regs, record->regs, sizeof(s->handler_regs));
	varid_interrupted_registers(s->ucontext, record->regs);
	record->interrupted_addr = VARID_ADDRESS(record->regs[VARID_SP(record->flags)]) - VARID_RED_ZONE;
	s->signal_stack_end = VARID_SIGNAL_STACK_END(at, stack + size);
	record->flags |= VARID_INTERRUPTED;
	return true;
}

/* Restores the record's own registers. Their instruction is native code. */
static void leave_interrupted(struct varid_scratch *s)
{
	memcpy(s->record.regs, s->handler_regs, sizeof(s->handler_regs));
	s->record.flags &= ~VARID_IN_BODY;
}
#else
static bool enter_interrupted(struct varid_scratch *s)
{
	return false;
}

static void leave_interrupted(struct varid_scratch *s)
{
}
#endif

#endif
