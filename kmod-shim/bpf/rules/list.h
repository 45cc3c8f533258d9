/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* LIST, optimised: the same frames as varid_walk_step, several at once. */
#ifndef VARID_BPF_RULES_LIST_H
#define VARID_BPF_RULES_LIST_H

#include "../copies.h"

#define PLAIN_AT_ONCE 8    // frames

// Walks up to PLAIN_AT_ONCE plain frames. Returns true if there may be more. alone: each frame is copied
// separately; otherwise all are taken from the copy.
static __always_inline bool plain_steps(struct scratch *s, __u32 limit, const bool alone)
{
	__u64 at = s->walk.next, start = s->copy_start, whole = s->copy_len, reg_pc = s->walk.reg_pc;
	// Local copies, because the compiler assumes that writes to out may change the layout.
	const __u8 word = s->layout.word;
	const __u16 link_at = s->layout.rules[0].frame_link, pc_at = s->layout.rules[0].frame_pc;
	__u64 pos = s->pos, next, pc, taken = 0;
	struct varid_packed_frame *out;
	const __u8 *window;

	if (!at || s->walk.quick || s->layout.rules[0].kind != VARID_RULE_LIST ||
	    s->record.frames + PLAIN_AT_ONCE > limit || pos > OUT_MAX - PLAIN_AT_ONCE * sizeof(*out))
		return false;
	whole = whole < VARID_WINDOW ? 0 : whole - (VARID_WINDOW - 1);
	out = (struct varid_packed_frame *)(s->out + pos);
#pragma unroll
	for (int i = 0; i < PLAIN_AT_ONCE; i++) {
		__u64 offset = at - start;

		if (alone) {
			if (bpf_probe_read_user(s->alone, VARID_WINDOW, (const void *)at))
				break;
		} else if (offset >= whole) {
			break;
		}
		window = alone ? s->alone : s->copy + (offset & (COPY_MAX - 1));
		next = varid_word(word, window, link_at);
		pc = !i && reg_pc ? reg_pc : varid_word(word, window, pc_at);
		if (!varid_plain_frame(at, next, pc, &out[i]))
			break;
		if (!i && !s->reach)
			s->reach = at;
		at = next;
		taken++;
		if (!at)
			break;
	}
	s->walk.next = at;
	if (taken)
		s->walk.reg_pc = 0;
	s->record.frames += taken;
	s->pos = pos + taken * sizeof(*out);
	return taken == PLAIN_AT_ONCE;
}

#endif
