/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * AT_SP: native frames of an interpreter. One register leads to a frame's CFA, another holds its bytecode
 * pc.
 */
#ifndef VARID_RULES_AT_SP_H
#define VARID_RULES_AT_SP_H

#include "saves.h"

/* Returns the distance below the CFA, in bytes, of the lowest word that a frame saves of its caller. */
static inline __attribute__((always_inline)) varid_u32 varid_saved_below(const struct varid_rule *rule)
{
	return VARID_SAVES_OFFSET(varid_larger(rule->saved_pc, varid_larger(rule->saved_frame, rule->saved_return)));
}

/* Returns the CFA that a register leads to, or 0 if it cannot be read. */
static inline __attribute__((always_inline)) varid_u64
varid_cfa(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 reg, varid_s16 cfa_word, varid_s16 cfa_bias)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const varid_u8 *window;

	if (cfa_word != VARID_NO_WORD) {
		window = VARID_WINDOW_AT(walk, VARID_ADDRESS(reg + cfa_word), word);
		if (!window)
			return 0;
		reg = varid_word(word, window, 0);
	}
	return VARID_ADDRESS(reg + cfa_bias);
}

/*
 * Starts with the frame of the code that contains the ip. If that frame is incomplete, starts with its
 * caller's.
 */
static inline __attribute__((always_inline)) int
varid_walk_state(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, const struct varid_leaf *leaf)
{
	struct varid_saves saves;
	varid_u64 cfa;

	cfa = varid_cfa(walk, layout, leaf->state_reg, leaf->cfa_word, leaf->cfa_bias);
	if (!cfa)
		return VARID_WALK_TORN;
	if (leaf->state & VARID_STATE_HAS_PC) {
		walk->cfa = cfa;
		return walk->frame && walk->reg_pc ? VARID_WALK_FRAME : VARID_WALK_TORN;
	}
	saves.pc = leaf->state & VARID_STATE_SAVED_PC ? quick->at_sp->saved_pc : 0;
	saves.frame = leaf->state & VARID_STATE_SAVED_FRAME ? quick->at_sp->saved_frame : 0;
	saves.returns = leaf->state & VARID_STATE_SAVED_RETURN ? quick->at_sp->saved_return : 0;
	return varid_walk_leave(walk, layout, quick, cfa, &saves, leaf->link) == VARID_WALK_TORN ? VARID_WALK_TORN :
													      VARID_WALK_FRAME;
}

/* Starts in the interpreter's code. A note is outdated there. */
static inline __attribute__((always_inline)) int
varid_walk_interpreter(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, const struct varid_leaf *leaf)
{
	walk->quick = VARID_ADDRESS(leaf->sp);
	walk->kind = VARID_QUICK_AT_SP;
	walk->frame = VARID_ADDRESS(leaf->frame);
	if (leaf->state)
		return varid_walk_state(walk, layout, quick, leaf);
	/* A frame is incomplete: neither registers nor notes lead to it. */
	if (!leaf->frame || leaf->rule != layout->quick_rule)
		return VARID_WALK_TORN;
	return walk->reg_pc ? VARID_WALK_FRAME : VARID_WALK_TORN;
}

#endif
