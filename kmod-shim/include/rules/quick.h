/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Walks stretches of quick frames of both rules, in any order. */
#ifndef VARID_RULES_QUICK_H
#define VARID_RULES_QUICK_H

#include "at_sp.h"
#include "compiled.h"
#include "list.h"

/* Starts in the innermost fragment, whose note has been read, and at the inner frames that the leaf's registers lead to. */
static inline __attribute__((always_inline)) int
varid_start_quick(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules, const struct varid_leaf *leaf)
{
	const struct varid_quick_rules quick = varid_quick_rules(layout, rules);
	int is_interpreter = 0;

	walk->note = walk->quick < VARID_ADDRESS(leaf->sp) ? 0 : walk->quick;
	if (quick.has_at_sp)
		is_interpreter = leaf->state || (leaf->frame && leaf->rule == layout->quick_rule) ||
				 varid_returns_into(quick.at_sp, leaf->ip + 1);
	if (is_interpreter) {
		if (varid_walk_interpreter(walk, layout, &quick, leaf) == VARID_WALK_FRAME) {
			walk->inner = VARID_INNER_KNOWN;
			return VARID_WALK_FRAME;
		}
		/* With compiled code, an incomplete frame is left to the unwinder. */
		if (!quick.has_compiled || (leaf->state ? leaf->state & VARID_STATE_HAS_PC : leaf->frame))
			return VARID_WALK_TORN;
		varid_end_stretch(walk);
		walk->quick = walk->note;
		return VARID_WALK_FRAME;
	}
	if (varid_walk_begun(walk, leaf->sp, leaf->frame) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	if (quick.has_compiled && quick.compiled->code_end && !leaf->frame)
		varid_walk_inner(walk, layout, &quick, leaf);
	return VARID_WALK_FRAME;
}

/*
 * A noted frame is one of the VM's special methods, which is left out, or a native method's, which has no pc. Each caller's bytecode
 * pc or pc in compiled code, and the registers that lead to the next frame, are saved by its callees.
 */
static inline __attribute__((always_inline)) int
varid_walk_quick(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, struct varid_frame *out)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const int is_noted = walk->kind == VARID_QUICK_NOTED;
	struct varid_saves saves;
	const varid_u8 *window;
	varid_u32 size;
	varid_u64 cfa;
	int result, is_special = 0;

	out->addr = walk->quick;
	if (walk->kind == VARID_QUICK_AT_SP) {
		out->method = 0;
		out->pc = walk->reg_pc;
		out->flags = 0;
		varid_saves_of_all(quick, word, &saves);
		cfa = walk->cfa ? walk->cfa : varid_cfa(walk, layout, walk->frame, quick->at_sp->cfa_word, quick->at_sp->cfa_bias);
	} else {
		window = VARID_WINDOW_AT(walk, walk->quick, word);
		if (!window)
			return VARID_WALK_TORN;
		out->method = varid_word(word, window, 0);
		out->pc = walk->returns;
		out->flags = is_noted ? VARID_FRAME_QUICK : VARID_FRAME_COMPILED;
		size = varid_quick_size(walk, layout, quick, out->method, &saves, &is_special);
		/*
		 * A frame that no rule describes ends its stretch: its pc and its callers are unknown. The walk continues with the
		 * next fragment.
		 */
		if (quick->has_compiled && (size == VARID_OTHER_FRAME || (!size && is_noted))) {
			varid_end_stretch(walk);
			out->pc = 0;
			return VARID_WALK_FRAME;
		}
		if (!size)
			return VARID_WALK_TORN;
		cfa = walk->quick + size;
	}
	result = varid_walk_leave(walk, layout, quick, cfa, &saves, 0);
	if (result == VARID_WALK_TORN)
		return result;
	if (is_special)
		return VARID_WALK_AGAIN;
	if (result == VARID_WALK_END)
		out->flags |= VARID_FRAME_OUTERMOST;
	return VARID_WALK_FRAME;
}

/*
 * Takes the next step of a stretch of quick frames. With compiled code, the note of the innermost fragment is only one frame, because
 * it may be outdated. The note of an outer fragment is current: its frame called the code inside.
 */
static inline __attribute__((always_inline)) int
varid_step_quick(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules, struct varid_frame *out)
{
	const struct varid_quick_rules quick = varid_quick_rules(layout, rules);
	const varid_u8 *window;
	int result;

	if (quick.has_compiled ? walk->is_outer || walk->inner : quick.has_at_sp) {
		result = varid_walk_quick(walk, layout, &quick, out);
		if (!quick.has_compiled || walk->is_outer || !walk->inner)
			return result;
		/* An interpreter's frame that no rule describes can only be left by the unwinder. */
		if (result != VARID_WALK_TORN && (!(out->flags & VARID_FRAME_COMPILED) || out->pc))
			return result;
		varid_end_stretch(walk);
		walk->quick = walk->note;
		walk->inner = VARID_INNER_NONE;
		return VARID_WALK_DROP;
	}
	out->addr = walk->quick;
	out->pc = 0;
	out->flags = VARID_FRAME_QUICK;
	window = VARID_WINDOW_AT(walk, walk->quick, layout->word == 4 ? 4 : 8);
	if (!window)
		return VARID_WALK_TORN;
	walk->quick = 0;
	out->method = varid_word(layout->word, window, 0);
	return VARID_WALK_FRAME;
}

#endif
