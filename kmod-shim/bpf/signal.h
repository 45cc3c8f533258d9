/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Where does the walk begin while a signal's handler runs on an alternate stack? With the registers that the signal interrupted. */
#ifndef VARID_BPF_SIGNAL_H
#define VARID_BPF_SIGNAL_H

#include "frames.h"
#include "signal_frame.h"

#define UCONTEXTS (COPY_MAX / VARID_UCONTEXT_ALIGN) // places where one is searched for
#define UCONTEXTS_UNROLLED 384 // without bpf_loop: the verifier follows every turn

// A search through the copy of the end of an alternate stack, from its highest place downwards.
struct search {
	__u64 stack; // the alternate stack
	__u64 size;
	__u64 last;  // the highest place's offset in the copy
	__u64 below; // how far below that the ucontext_t is; larger: there is none
};

// One place: 0 to go on.
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

// The highest ucontext_t of an alternate stack in the last COPY_MAX bytes of it, 0: there is none.
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

// Takes the registers that a signal interrupted for those of the record, which are kept. Whether they have been found, the record says.
// Functions of their own: the verifier follows them once.
__noinline int enter_interrupted(struct scratch *s, __u64 stack, __u64 size)
{
	return enter(s, stack, size, 1);
}

__noinline int enter_interrupted_no_loop(struct scratch *s, __u64 stack, __u64 size)
{
	return enter(s, stack, size, 0);
}

// Gives the record its own registers back. Its instruction is native code's.
static __always_inline void leave_interrupted(struct scratch *s)
{
	__builtin_memcpy(s->record.regs, s->handler_regs, sizeof(s->handler_regs));
	s->record.flags &= ~VARID_IN_BODY;
}

#endif
