/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* SIZED, CODE_INFO: frames of compiled code, and noted frames, which are those of native methods and of the VM's special methods. */
#ifndef VARID_RULES_COMPILED_H
#define VARID_RULES_COMPILED_H

#include "method_code.h"

#define VARID_PROLOGUE 64 /* a method's frame is complete after this many bytes of code; arm64 */
#define VARID_ARM64_RET 0xd65f03c0u
#define VARID_EM_X86_64 62 /* varid_layout.machine: calls leave the return address on the stack */
#define VARID_ARGUMENTS_FRAME 2 /* the special method whose frame keeps the arguments of a call */

/* Returns the size of a special method's frame in bytes, or 0 if the method is not special. */
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

/* Returns the size of the frame that the VM makes for a native method, in bytes, or 0 if the method is not native. */
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
 * Returns the size of a compiled or noted frame in bytes, and what it saves. 0: the method does not determine it. VARID_OTHER_FRAME: the
 * method is executed by other code, which makes the frame. is_special: it is a special method's frame.
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
		/* Native methods called by compiled code may have compiled code of their own. */
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
	/* A noted stub is a proxy's, whose frame saves all arguments. */
	if (code.size == VARID_STUB_SIZE)
		return is_noted ? rule->special_sizes[VARID_ARGUMENTS_FRAME] : 0;
	/* Otherwise the method's code has been replaced since the call, or the method was entered in the middle of a loop. */
	if (!quick->has_compiled || (!is_noted && !varid_returns_to(&code, walk->returns)))
		return 0;
	return varid_frame_of_code(walk, rule, quick->has_at_sp, word, &code, saves);
}

/*
 * Finds the frame of the caller, and the pc in the caller's code, of a leaf in compiled code. Returns 0 if they are not known. An
 * unwinder that uses all that is known of the leaf's code must find the same frame; otherwise this one is discarded.
 *
 * After its prologue a method's frame has the method at the stack pointer. Before, in an epilogue, and in a method without a frame, the
 * caller's frame is at the stack pointer, or the return address below it.
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
	/* The word at sp is a return address and not a method: the leaf has no frame, or not yet. */
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
	/* Stubs of native methods temporarily reserve space for arguments below the method. */
	if (flags & rule->native_flag)
		return 0;
	if (is_linked && varid_returns_to(&code, returns)) {
		/* The last call returned there, or the frame of a recursive call is not complete or already released. */
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
	/* The leaf may have been called by native code. */
	if (result != VARID_WALK_FRAME)
		return result == VARID_WALK_END;
	/* The return address is saved last. Until the first call it is also in the link register. */
	return !is_linked || ip - code.entry >= VARID_PROLOGUE || walk->returns == returns;
}

/*
 * Starts with the innermost stretch of quick frames: at the caller of a leaf in compiled code, else at the thread's note. Compiled code
 * does not clear the note.
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
