/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* LIST: frames that link to their callers', in fragments of a thread's stack, each with a note of the quick frame that comes before it. */
#ifndef VARID_RULES_LIST_H
#define VARID_RULES_LIST_H

#include "../walk.h"

#define VARID_QUICK_TAG 3ull
#define VARID_GENERIC_JNI 1ull /* the tag of a native method's frame that its own code has not made */

/* Takes in a fragment: its quick frame, its top frame, the next one out. */
static inline __attribute__((always_inline)) void
varid_walk_into(struct varid_walk *walk, varid_u64 quick, varid_u64 top, varid_u64 link)
{
	walk->is_generic = (quick & VARID_QUICK_TAG) == VARID_GENERIC_JNI;
	walk->quick = quick & ~VARID_QUICK_TAG;
	walk->next = top;
	walk->fragment = link;
}

/* A word of a fragment; 0 where the VM has no such field. */
static inline __attribute__((always_inline)) varid_u64
varid_fragment_word(const struct varid_layout *layout, const varid_u32 rules, const varid_u8 *window, varid_u16 offset)
{
	/* A list has all of them. */
	if (VARID_MAY_HAVE(rules, VARID_RULE_AT_SP) && offset == VARID_NO_FIELD)
		return 0;
	return varid_word(layout->word, window, offset);
}

/* The same with the fragment at addr. */
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

/* The walk is in its innermost fragment: does that agree with the registers? */
static inline __attribute__((always_inline)) int
varid_walk_begun(struct varid_walk *walk, varid_u64 sp, varid_u64 reg_frame)
{
	/* Compiled code leaves behind what it last told the VM; a frame below sp is no more. */
	if (walk->quick < VARID_ADDRESS(sp))
		walk->quick = 0;
	reg_frame = VARID_ADDRESS(reg_frame);
	if (reg_frame && (walk->next != reg_frame || walk->quick))
		return VARID_WALK_TORN;
	return VARID_WALK_FRAME;
}

/* The next linked frame. */
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
	/* The stack grows down: a caller's frame lies above, and no chain can be a cycle. */
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
 * LIST: is the frame at, with this link and this pc (from the register if it is the first one), plain:
 * its pc known, its caller above it or none? Then varid_walk_step, if no quick frame comes
 * before, would give it this packed form, and the link for the next frame.
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
