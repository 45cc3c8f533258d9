/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* SIZED, CODE_INFO: frames of compiled code, and those that the thread has noted: of native methods and of the VM's own. */
#ifndef VARID_RULES_COMPILED_H
#define VARID_RULES_COMPILED_H

#include "method_code.h"

#define VARID_PROLOGUE 64 /* bytes of a method's code behind which its frame is complete; arm64 */
#define VARID_ARM64_RET 0xd65f03c0u
#define VARID_EM_X86_64 62 /* varid_layout.machine: calls leave the return address on the stack */
#define VARID_ARGUMENTS_FRAME 2 /* the special method whose frame keeps the arguments of a call */

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
 * Where the frame of the caller is, and where in its code, of a leaf in compiled code; 0: that is not known. Who unwinds
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
 * Begins with the innermost stretch of quick frames: with the caller's of a leaf in compiled code, else with what the
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

#endif
