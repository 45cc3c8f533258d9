/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* SAVE_AREA: frames on a stack of the VM's own, each with an area below its frame pointer. */
#ifndef VARID_RULES_SAVE_AREA_H
#define VARID_RULES_SAVE_AREA_H

#include "../walk.h"

/* Returns the address of a frame pointer's area, or 0 for a null frame pointer. */
static inline __attribute__((always_inline)) varid_u64
varid_area(const struct varid_layout *layout, varid_u64 frame)
{
	return frame ? VARID_ADDRESS(frame + layout->rules[0].frame_bias) : 0;
}

/* Reads only the area, which always exists. The frame above may end at the end of its stack. */
static inline __attribute__((always_inline)) const varid_u8 *
varid_area_at(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 at)
{
	return VARID_WINDOW_AT(walk, at, VARID_OFFSET((varid_u32)-layout->rules[0].frame_bias));
}

static inline __attribute__((always_inline)) int
varid_start_areas(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 base, const struct varid_leaf *leaf)
{
	const varid_u8 *window;

	window = VARID_WINDOW_AT(walk, base + layout->thread_fragment, layout->word == 4 ? 4 : 8);
	if (!window)
		return VARID_WALK_TORN;
	walk->next = varid_area(layout, varid_word(layout->word, window, 0));
	/* A handler that needs more registers uses these two for other values temporarily. */
	if (walk->next != VARID_ADDRESS(leaf->frame))
		walk->reg_pc = 0;
	return VARID_WALK_FRAME;
}

/*
 * A frame's pc is in the area of its callee. Across a break, and for the innermost frame
 * outside of the loop's body, only the exported pc is known, which may be outdated. A native
 * method never exports one.
 */
static inline __attribute__((always_inline)) int
varid_step_area(struct varid_walk *walk, const struct varid_layout *layout, struct varid_frame *out)
{
	const struct varid_rule *rule = &layout->rules[0];
	const varid_u8 *window;
	varid_u64 at = walk->next, next;

	if (!at)
		return VARID_WALK_END;
	window = varid_area_at(walk, layout, at);
	if (!window)
		return VARID_WALK_TORN;
	next = varid_area(layout, varid_word(layout->word, window, rule->frame_link));
	out->method = varid_word(layout->word, window, rule->frame_method);
	if (!out->method) {
		if (next && next <= at)
			return VARID_WALK_TORN;
		at = next;
		walk->reg_pc = 0;
		if (!at)
			return VARID_WALK_END;
		window = varid_area_at(walk, layout, at);
		if (!window)
			return VARID_WALK_TORN;
		next = varid_area(layout, varid_word(layout->word, window, rule->frame_link));
		out->method = varid_word(layout->word, window, rule->frame_method);
	}
	/*
	 * As for fragments, callers have higher addresses. A break never follows another one.
	 */
	if (!out->method || (next && next <= at))
		return VARID_WALK_TORN;
	out->addr = at;
	out->flags = 0;
	out->pc = walk->reg_pc;
	if (!out->pc) {
		out->pc = varid_word(layout->word, window, rule->frame_pc);
		out->flags = VARID_FRAME_EXPORTED;
	}
	walk->reg_pc = varid_word(layout->word, window, rule->frame_caller_pc);
	if (!next || !walk->reg_pc)
		out->flags |= VARID_FRAME_OUTERMOST;
	walk->next = next;
	return VARID_WALK_FRAME;
}

#endif
