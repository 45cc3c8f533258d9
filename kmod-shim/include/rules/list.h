/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* LIST: linked frames, in fragments of a thread's stack. Each fragment has a note of the quick frame that precedes it. */
#ifndef VARID_RULES_LIST_H
#define VARID_RULES_LIST_H

#include "../walk.h"

#define VARID_QUICK_TAG 3ull
#define VARID_GENERIC_JNI 1ull /* the tag of a native method's frame that was not made by compiled code of its own */

/* Enters a fragment: sets the quick frame, the top frame, and the next outer fragment. */
static inline __attribute__((always_inline)) void
varid_walk_into(struct varid_walk *walk, varid_u64 quick, varid_u64 top, varid_u64 link)
{
	walk->is_generic = (quick & VARID_QUICK_TAG) == VARID_GENERIC_JNI;
	walk->quick = quick & ~VARID_QUICK_TAG;
	walk->next = top;
	walk->fragment = link;
}

/* Returns a word of a fragment, or 0 if the VM has no such field. */
static inline __attribute__((always_inline)) varid_u64
varid_fragment_word(const struct varid_layout *layout, const varid_u32 rules, const varid_u8 *window, varid_u16 offset)
{
	/* A VM with a list has all fields. */
	if (VARID_MAY_HAVE(rules, VARID_RULE_AT_SP) && offset == VARID_NO_FIELD)
		return 0;
	return varid_word(layout->word, window, offset);
}

/* Enters the fragment at addr. */
static inline __attribute__((always_inline)) int
varid_walk_fragment(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules, varid_u64 addr)
{
	const varid_u8 *window = VARID_WINDOW_AT(walk, addr, VARID_WINDOW);

	if (!window)
		return VARID_WALK_TORN;
	varid_walk_into(walk, varid_fragment_word(layout, rules, window, layout->fragment_quick),
			varid_fragment_word(layout, rules, window, layout->fragment_top),
			varid_fragment_word(layout, rules, window, layout->fragment_link));
	return VARID_WALK_FRAME;
}

/* Checks the innermost fragment against the registers. */
static inline __attribute__((always_inline)) int
varid_walk_begun(struct varid_walk *walk, varid_u64 sp, varid_u64 reg_frame)
{
	/* Compiled code does not clear its last note. A frame below sp has returned. */
	if (walk->quick < VARID_ADDRESS(sp))
		walk->quick = 0;
	reg_frame = VARID_ADDRESS(reg_frame);
	if (reg_frame && (walk->next != reg_frame || walk->quick))
		return VARID_WALK_TORN;
	return VARID_WALK_FRAME;
}

/* Walks the next linked frame. */
static inline __attribute__((always_inline)) int
varid_step_list(struct varid_walk *walk, const struct varid_layout *layout, struct varid_frame *out)
{
	const struct varid_rule *rule = &layout->rules[0];
	const varid_u8 *window;
	varid_u64 at, insns, pc;

	at = walk->next;
	if (!at)
		return VARID_WALK_END;
	window = VARID_WINDOW_AT(walk, at, VARID_WINDOW);
	if (!window)
		return VARID_WALK_TORN;
	walk->next = varid_word(layout->word, window, rule->frame_link);
	/* The stack grows down, so callers' frames have higher addresses. This also excludes cycles. */
	if (walk->next && walk->next <= at)
		return VARID_WALK_TORN;
	insns = varid_word(layout->word, window, rule->frame_insns);
	pc = walk->reg_pc;
	walk->reg_pc = 0;
	if (!pc)
		pc = varid_word(layout->word, window, rule->frame_pc);
	out->flags = walk->next ? 0 : VARID_FRAME_OUTERMOST;
	if (!pc) {
		pc = 2ull * *(varid_u32 *)(window + VARID_OFFSET(rule->frame_index));
		if (insns)
			pc += insns;
		else
			out->flags |= VARID_FRAME_RELATIVE;
	}
	out->addr = at;
	out->pc = pc;
	out->method = varid_word(layout->word, window, rule->frame_method);
	return VARID_WALK_FRAME;
}

/*
 * LIST: returns 1 if the frame at `at` is plain: its pc is known, and its caller is above it or absent. `link` is its link, and `pc` its
 * pc (from the register if it is the first frame). varid_walk_step would give the same packed form and the link as the next frame, unless
 * a quick frame comes first.
 */
static inline __attribute__((always_inline)) int
varid_plain_frame(varid_u64 at, varid_u64 link, varid_u64 pc, struct varid_packed_frame *out)
{
	if (!pc || (link && link <= at))
		return 0;
	out->addr = link ? at : at | VARID_FRAME_OUTERMOST << VARID_FRAME_FLAGS_SHIFT;
	out->what = pc;
	return 1;
}

#endif
