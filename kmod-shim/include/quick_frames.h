/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Quick frames: those that are on the native stack with their method at the stack pointer, of an interpreter (AT_SP) and of
 * compiled code (SIZED, CODE_INFO), in any order.
 *
 * Whose frame one is, its callee's return address tells. An interpreter's frame is led to by a register, which its callee keeps,
 * or a callee further in: from the innermost frame, or from one that keeps all registers, the walk knows at each frame what
 * the interpreter's registers hold in it.
 *
 * Included by walker.h.
 */
#ifndef VARID_QUICK_FRAMES_H
#define VARID_QUICK_FRAMES_H

#include "method_code.h"

#define VARID_LARGEST_FRAME (1u << 20) /* bytes; 65,535 registers and as many references */
#define VARID_PROLOGUE 64 /* bytes of a method's code behind which its frame is complete; arm64 */
#define VARID_ARM64_RET 0xd65f03c0u
#define VARID_EM_X86_64 62 /* varid_layout.machine: calls leave the return address on the stack */
#define VARID_ARGUMENTS_FRAME 2 /* the special method whose frame keeps the arguments of a call */

/*
 * The rules of quick frames. A pointer to a rule that there is not leads to another one: a verifier need not know that one is NULL
 * where the other is not.
 */
struct varid_quick_rules {
	const struct varid_rule *at_sp;
	const struct varid_rule *compiled;
	int has_at_sp;
	int has_compiled;
};

/* That of AT_SP is the layout's quick_rule, that of compiled frames is it, or the one behind. */
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

/* Whether the code before a return address, or at an ip that is one less, follows a rule. */
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

/* What a frame keeps that keeps all registers: each but one of compiled code. */
static inline __attribute__((always_inline)) void
varid_saves_of_all(const struct varid_quick_rules *quick, varid_u32 word, struct varid_saves *saves)
{
	saves->pc = quick->has_at_sp ? quick->at_sp->saved_pc : 0;
	saves->frame = quick->has_at_sp ? quick->at_sp->saved_frame : 0;
	saves->returns = quick->has_at_sp ? quick->at_sp->saved_return : word;
}

/* AT_SP: how far below its CFA a frame keeps the first of what it keeps of its caller. */
static inline __attribute__((always_inline)) varid_u32 varid_saved_below(const struct varid_rule *rule)
{
	return VARID_SAVES_OFFSET(varid_larger(rule->saved_pc, varid_larger(rule->saved_frame, rule->saved_return)));
}

/* No quick frame comes next. */
static inline __attribute__((always_inline)) void varid_end_stretch(struct varid_walk *walk)
{
	walk->quick = walk->frame = walk->reg_pc = walk->cfa = walk->returns = 0;
	walk->kind = VARID_QUICK_NOTED;
}

/* The next quick frame is at an address, and is returned to at another: 0 if the registers do not lead to it. */
static inline __attribute__((always_inline)) int
varid_enter(struct varid_walk *walk, const struct varid_quick_rules *quick, varid_u64 at, varid_u64 returns)
{
	walk->quick = at;
	walk->returns = returns;
	walk->kind = quick->has_at_sp && varid_returns_into(quick->at_sp, returns) ? VARID_QUICK_AT_SP : VARID_QUICK_COMPILED;
	return walk->kind == VARID_QUICK_AT_SP ? walk->frame && walk->reg_pc : returns != 0;
}

/*
 * Goes from a frame to its caller's, by what the frame keeps below its CFA. link: the return address of one that does not keep it.
 * VARID_WALK_END: the caller is none of this stretch.
 */
static inline __attribute__((always_inline)) int
varid_walk_leave(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, varid_u64 cfa, const struct varid_saves *saves, varid_u64 link)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	/* Else the stack may end there. The word at the CFA is the caller's method. */
	const varid_u32 below = VARID_SAVES_OFFSET(varid_larger(saves->pc, varid_larger(saves->frame, saves->returns)));
	const varid_u32 size = VARID_SAVES_OFFSET(below + word);
	const varid_u8 *window;
	varid_u64 method, returns;

	/* Where calls leave the return address in a register, a frame of which nothing is saved has no bytes yet, or no longer. */
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

/* AT_SP: the CFA that a register leads to; 0: it cannot be read. */
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

/* AT_SP: begins with the frame in whose code the ip is, or, while that is being made or left, with its caller's. */
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

/* AT_SP: begins in the interpreter's code. Whatever note there is, it is of a call that is over. */
static inline __attribute__((always_inline)) int
varid_walk_interpreter(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, const struct varid_leaf *leaf)
{
	walk->quick = VARID_ADDRESS(leaf->sp);
	walk->kind = VARID_QUICK_AT_SP;
	walk->frame = VARID_ADDRESS(leaf->frame);
	if (leaf->state)
		return varid_walk_state(walk, layout, quick, leaf);
	/* A frame is being made or left: neither registers nor notes tell where it is. */
	if (!leaf->frame || leaf->rule != layout->quick_rule)
		return VARID_WALK_TORN;
	return walk->reg_pc ? VARID_WALK_FRAME : VARID_WALK_TORN;
}

/* Bytes of the frame of one of the VM's special methods; 0: the method is none. */
static inline __attribute__((always_inline)) varid_u32
varid_special_size(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule, varid_u64 method)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const varid_u8 *window;
	varid_u32 size = 0, i;

	if (!rule->special_count)
		return 0;
	window = VARID_ALONE_AT(walk, rule->special_methods, word);
	if (!window)
		return 0;
	window = VARID_ALONE_AT(walk, varid_word(word, window, 0), VARID_SPECIAL_METHODS * word);
	if (!window)
		return 0;
#ifdef __clang__
#pragma unroll
#endif
	for (i = 0; i < VARID_SPECIAL_METHODS; i++)
		if (i < rule->special_count && varid_word(word, window, i * word) == method)
			size = rule->special_sizes[i];
	return size;
}

/* Bytes of the frame that the VM makes for a native method; 0: the method is not native. */
static inline __attribute__((always_inline)) varid_u32
varid_native_size(struct varid_walk *walk, const struct varid_rule *rule, varid_u64 method)
{
	const varid_u8 *window;

	if (!rule->native_flag)
		return 0;
	window = VARID_ALONE_AT(walk, method + rule->method_flags, sizeof(varid_u32));
	return window && *(const varid_u32 *)window & rule->native_flag ? rule->native_size : 0;
}

/*
 * Bytes of a frame of compiled code, or of one that a note led to, and what it keeps; 0: its method does not tell;
 * VARID_OTHER_FRAME: it is of other code that the method is executed by. is_special: it is no method's own.
 */
static inline __attribute__((always_inline)) varid_u32
varid_quick_size(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, varid_u64 method, struct varid_saves *saves, int *is_special)
{
	const struct varid_rule *rule = quick->has_compiled ? quick->compiled : quick->at_sp;
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const int is_noted = walk->kind == VARID_QUICK_NOTED;
	struct varid_method_code code;
	const varid_u8 *window;
	varid_u32 size;

	varid_saves_of_all(quick, word, saves);
	if (is_noted) {
		size = varid_special_size(walk, layout, rule, method);
		*is_special = size != 0;
		if (size)
			return size;
		/* Compiled code may call native methods by code of their own. */
		if (!quick->has_compiled || walk->is_generic) {
			size = varid_native_size(walk, rule, method);
			if (size || quick->has_compiled)
				return size;
		}
	}
	if (!rule->method_entry)
		return 0;
	window = VARID_ALONE_AT(walk, method + rule->method_entry, word);
	if (!window || !varid_code_at(walk, rule, varid_word(word, window, 0), &code))
		return 0;
	/* A stub that a note leads to is a proxy's, and keeps all arguments. */
	if (code.size == VARID_STUB_SIZE)
		return is_noted ? rule->special_sizes[VARID_ARGUMENTS_FRAME] : 0;
	/* Else the method's code has been replaced since the call, or the method was entered in the middle of a loop. */
	if (!quick->has_compiled || (!is_noted && !varid_returns_to(&code, walk->returns)))
		return 0;
	return varid_frame_of_code(walk, rule, quick->has_at_sp, word, &code, saves);
}

/*
 * SIZED, CODE_INFO: where the frame of the caller is, and where in its code, of a leaf in compiled code; 0: that is not known. Who unwinds
 * the leaf by all that is known of its code finds the same frame, or this one is none.
 *
 * Behind its prologue a method's frame has the method at the stack pointer. Before it, in an epilogue and in a method that needs no frame
 * there is the caller's frame, with nothing or the return address below.
 */
static inline __attribute__((always_inline)) int
varid_walk_leaf(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, const struct varid_leaf *leaf)
{
	const struct varid_rule *rule = quick->compiled;
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const int is_linked = layout->machine != VARID_EM_X86_64;
	const varid_u64 sp = VARID_ADDRESS(leaf->sp), ip = VARID_ADDRESS(leaf->ip);
	struct varid_method_code code;
	struct varid_saves saves;
	const varid_u8 *window;
	varid_u64 method, returns;
	varid_u32 size, flags;
	int result;

	window = VARID_ALONE_AT(walk, sp, word);
	if (!window)
		return 0;
	method = varid_word(word, window, 0);
	returns = is_linked ? VARID_ADDRESS(leaf->link) : method;
	walk->frame = VARID_ADDRESS(leaf->quick_frame);
	walk->reg_pc = VARID_ADDRESS(leaf->quick_pc);
	result = varid_enter(walk, quick, is_linked ? sp : sp + word, returns);
	/* What no frame is made for, or not yet: a return address is no method. */
	if (!is_linked && (walk->kind == VARID_QUICK_AT_SP || varid_returns_into(rule, returns)))
		return result;
	if (rule->method_entry > VARID_WINDOW - 2 * VARID_WORD_MAX || rule->method_flags > rule->method_entry)
		return 0;
	window = VARID_ALONE_AT(walk, method, rule->method_entry + word);
	if (!window)
		return 0;
	flags = *(const varid_u32 *)(window + VARID_OFFSET(rule->method_flags));
	if (!varid_code_at(walk, rule, varid_word(word, window, rule->method_entry), &code))
		return 0;
	if (!varid_returns_to(&code, ip + 1))
		return is_linked && varid_returns_to(&code, returns);
	/* The frames of native methods' stubs have room for arguments below the method, for a while. */
	if (flags & rule->native_flag)
		return 0;
	if (is_linked && varid_returns_to(&code, returns)) {
		/* The last call returned there, or a method that calls itself has no frame yet, or no more. */
		if (ip - code.entry < VARID_PROLOGUE)
			return 0;
		window = VARID_ALONE_AT(walk, ip, sizeof(varid_u32));
		if (!window)
			return 0;
		if (*(const varid_u32 *)window == VARID_ARM64_RET)
			return 1;
	}
	size = varid_frame_of_code(walk, rule, quick->has_at_sp, word, &code, &saves);
	if (size < 2 * word)
		return 0;
	walk->quick = sp;
	result = varid_walk_leave(walk, layout, quick, sp + size, &saves, 0);
	/* Native code may have called the leaf. */
	if (result != VARID_WALK_FRAME)
		return result == VARID_WALK_END;
	/* The return address is saved last; before the first call it is in its register, too. */
	return !is_linked || ip - code.entry >= VARID_PROLOGUE || walk->returns == returns;
}

/*
 * SIZED, CODE_INFO: begins with the innermost stretch of quick frames: with the caller's of a leaf in compiled code, else with what the
 * thread has noted, which compiled code leaves behind.
 */
static inline __attribute__((always_inline)) void
varid_walk_inner(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_quick_rules *quick, const struct varid_leaf *leaf)
{
	if (!varid_returns_into(quick->compiled, leaf->ip + 1))
		return;
	if (varid_walk_leaf(walk, layout, quick, leaf)) {
		walk->inner = VARID_INNER_TRIED;
		return;
	}
	varid_end_stretch(walk);
	walk->quick = walk->note;
}

/*
 * A frame that a note led to is one of the VM's own, which is left out, or a native method's, and has no pc. Each of its callers
 * has its pc, or its place in compiled code, and its way to the next one in what its callees keep.
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
		 * A frame that no rule describes ends its stretch: its pc and its callers are not known, those of the next
		 * fragment are.
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
 * The next step of a stretch of quick frames. A note of the innermost fragment is one frame where there is compiled code: that leaves
 * behind the note of a call that is over. In an outer fragment it has called what is there.
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
		/* An interpreter's frame that no rule describes is one that only unwinding leaves. */
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
