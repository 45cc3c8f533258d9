/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The common part of the rules of quick frames. These frames are on the native stack with their method at the stack pointer. They are an
 * interpreter's (AT_SP) or of compiled code (SIZED, CODE_INFO), in any order.
 *
 * The return address in its callee determines which rule a frame follows. An interpreter's frame is found by a register that its callee, or a
 * frame further in, has saved. So the walk tracks the values of the interpreter's registers in each frame, from the innermost frame, or from
 * one that saves all registers, on.
 */
#ifndef VARID_RULES_SAVES_H
#define VARID_RULES_SAVES_H

#include "../walk.h"

#define VARID_LARGEST_FRAME (1u << 20) /* bytes; 65,535 registers and as many references */

/* Distances below the CFA at which a frame saves the state of its caller, in bytes. 0: the value is still in its register. */
struct varid_saves {
	varid_u32 pc;      /* AT_SP: reg_pc */
	varid_u32 frame;   /* AT_SP: reg_frame */
	varid_u32 returns; /* the return address */
};

/*
 * The rules of quick frames. The pointer to an absent rule points to another rule: so the verifier need not prove that it is not NULL.
 */
struct varid_quick_rules {
	const struct varid_rule *at_sp;
	const struct varid_rule *compiled;
	int has_at_sp;
	int has_compiled;
};

/* Returns the rules. That of AT_SP is the layout's quick_rule, and that of compiled frames is the same or the next one. */
static inline __attribute__((always_inline)) struct varid_quick_rules
varid_quick_rules(const struct varid_layout *layout, const varid_u32 rules)
{
	const varid_u32 at = layout->quick_rule;
	const int is_there = VARID_MAY_HAVE(rules, VARID_RULE_AT_SP) && at != VARID_NO_RULE;
	struct varid_quick_rules quick;
	varid_u32 behind;

	quick.at_sp = &layout->rules[at & (VARID_MAX_RULES - 1)];
	quick.has_at_sp = is_there && quick.at_sp->kind == VARID_RULE_AT_SP;
	behind = at + (quick.has_at_sp ? 1 : 0);
	quick.compiled = &layout->rules[behind & (VARID_MAX_RULES - 1)];
	quick.has_compiled = is_there && behind < layout->rule_count &&
			     (quick.compiled->kind == VARID_RULE_SIZED || quick.compiled->kind == VARID_RULE_CODE_INFO);
	return quick;
}

/* Returns nonzero if the code before a return address follows the rule. For an ip, pass ip + 1. */
static inline __attribute__((always_inline)) int
varid_returns_into(const struct varid_rule *rule, varid_u64 address)
{
	address = VARID_ADDRESS(address);
	return address > rule->code_start && address <= rule->code_end;
}

static inline __attribute__((always_inline)) varid_u32 varid_larger(varid_u32 one, varid_u32 other)
{
	return one > other ? one : other;
}

/* Save offsets of a frame that saves every register: all quick frames except compiled ones. */
static inline __attribute__((always_inline)) void
varid_saves_of_all(const struct varid_quick_rules *quick, varid_u32 word, struct varid_saves *saves)
{
	saves->pc = quick->has_at_sp ? quick->at_sp->saved_pc : 0;
	saves->frame = quick->has_at_sp ? quick->at_sp->saved_frame : 0;
	saves->returns = quick->has_at_sp ? quick->at_sp->saved_return : word;
}

/* Ends a stretch: no quick frame follows. */
static inline __attribute__((always_inline)) void varid_end_stretch(struct varid_walk *walk)
{
	walk->quick = walk->frame = walk->reg_pc = walk->cfa = walk->returns = 0;
	walk->kind = VARID_QUICK_NOTED;
}

/* Enters the next quick frame, at `at`. `returns` is the return address into its code. Returns 0 if the registers do not lead to it. */
static inline __attribute__((always_inline)) int
varid_enter(struct varid_walk *walk, const struct varid_quick_rules *quick, varid_u64 at, varid_u64 returns)
{
	walk->quick = at;
	walk->returns = returns;
	walk->kind = quick->has_at_sp && varid_returns_into(quick->at_sp, returns) ? VARID_QUICK_AT_SP : VARID_QUICK_COMPILED;
	return walk->kind == VARID_QUICK_AT_SP ? walk->frame && walk->reg_pc : returns != 0;
}

/*
 * Goes from a frame to its caller's, by the words that the frame saves below its CFA. link: the return address, if the frame does not save
 * it. VARID_WALK_END: the caller is not in this stretch.
 */
static inline __attribute__((always_inline)) int
varid_walk_leave(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, varid_u64 cfa, const struct varid_saves *saves, varid_u64 link)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	/* Not a whole window: the stack may end there. The word at the CFA is the caller's method. */
	const varid_u32 below = VARID_SAVES_OFFSET(varid_larger(saves->pc, varid_larger(saves->frame, saves->returns)));
	const varid_u32 size = VARID_SAVES_OFFSET(below + word);
	const varid_u8 *window;
	varid_u64 method, returns;

	/* If calls leave the return address in a register, a frame that saves nothing has size 0 at its start and end. */
	if (cfa < walk->quick || (saves->returns && cfa == walk->quick) || cfa - walk->quick > VARID_LARGEST_FRAME)
		return VARID_WALK_TORN;
	window = VARID_WINDOW_AT(walk, cfa - below, size);
	if (!window)
		return VARID_WALK_TORN;
	method = varid_saved_word(word, window, below);
	returns = saves->returns ? varid_saved_word(word, window, below - saves->returns) : VARID_ADDRESS(link);
	if (!method || (!quick->has_compiled && !varid_returns_into(quick->at_sp, returns))) {
		varid_end_stretch(walk);
		return VARID_WALK_END;
	}
	if (saves->frame)
		walk->frame = varid_saved_word(word, window, below - saves->frame);
	if (saves->pc)
		walk->reg_pc = varid_saved_word(word, window, below - saves->pc);
	walk->cfa = 0;
	return varid_enter(walk, quick, cfa, returns) ? VARID_WALK_FRAME : VARID_WALK_TORN;
}

#endif
