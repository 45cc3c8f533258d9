/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Starts the walk at the interrupted registers while a signal handler runs on an alternate stack. */
#ifndef VARID_BPF_SIGNAL_H
#define VARID_BPF_SIGNAL_H

#include "frames.h"
#include "signal_frame.h"

#define UCONTEXTS (COPY_MAX / VARID_UCONTEXT_ALIGN) // places to search
#define UCONTEXTS_UNROLLED 384 // without bpf_loop: the verifier follows every iteration

// A search through the copy of the end of an alternate stack, from the highest place down.
struct search {
	__u64 stack; // the alternate stack
	__u64 size;
	__u64 last;  // offset of the highest place in the copy
	__u64 below; // distance of the ucontext_t below that; larger: there is none
};

// Searches one place. Returns 0 to continue.
static __always_inline long search_place(struct scratch *s, struct search *search, __u32 place)
{
	const __u64 below = (__u64)place * VARID_UCONTEXT_ALIGN;

	if (below > search->last)
		return 1;
	if (!varid_is_ucontext(s->copy + ((search->last - below) & (COPY_MAX - VARID_UCONTEXT_ALIGN)), search->stack, search->size))
		return 0;
	search->below = below;
	return 1;
}

static long search_callback(__u32 place, void *search)
{
	struct scratch *s = own_scratch();

	return s ? search_place(s, search, place) : 1;
}

// Returns the highest ucontext_t in the last COPY_MAX bytes of an alternate stack, or 0.
static __always_inline __u64 search_ucontext(struct scratch *s, __u64 stack, __u64 size, const int has_bpf_loop)
{
	const __u64 end = (stack + size) & ~(__u64)(VARID_UCONTEXT_ALIGN - 1);
	struct search search = { .stack = stack, .size = size, .below = COPY_MAX };
	__u64 from, len;

	from = s->record.stack_addr & ~(__u64)(VARID_UCONTEXT_ALIGN - 1);
	if (from + COPY_MAX < end)
		from = end - COPY_MAX;
	len = end - from;
	if (len > COPY_MAX || len < VARID_UCONTEXT_BYTES || !copied(s, from, len))
		return 0;
	search.last = len - VARID_UCONTEXT_BYTES;
	if (has_bpf_loop) {
		bpf_loop(UCONTEXTS, search_callback, &search, 0);
	} else {
		for (__u32 place = 0; place < UCONTEXTS_UNROLLED; place++)
			if (search_place(s, &search, place))
				break;
	}
	return search.below > search.last ? 0 : from + search.last - search.below;
}

static __always_inline int enter(struct scratch *s, __u64 stack, __u64 size, const int has_bpf_loop)
{
	const __u64 end = stack + size;
	__u64 at;

	if (!s)
		return 0;
	at = end - s->ucontext_below;
	if (!s->ucontext_below || at < s->record.stack_addr || !copied(s, at, VARID_UCONTEXT_BYTES) ||
	    !varid_is_ucontext(s->copy, stack, size)) {
		at = search_ucontext(s, stack, size, has_bpf_loop);
		if (!at || !copied(s, at, VARID_UCONTEXT_BYTES))
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

// Saves the record's registers and replaces them by those that the signal interrupted. VARID_INTERRUPTED is set if they were found.
// Separate functions: the verifier checks them once.
__noinline int enter_interrupted(struct scratch *s, __u64 stack, __u64 size)
{
	return enter(s, stack, size, 1);
}

__noinline int enter_interrupted_no_loop(struct scratch *s, __u64 stack, __u64 size)
{
	return enter(s, stack, size, 0);
}

// Restores the record's own registers, whose ip is in native code.
static __always_inline void leave_interrupted(struct scratch *s)
{
	__builtin_memcpy(s->record.regs, s->handler_regs, sizeof(s->handler_regs));
	s->record.flags &= ~VARID_IN_BODY;
}

#endif
