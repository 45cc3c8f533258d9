/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The walker: from a thread's base to its managed frames, one frame a step.
 *
 * Compiled into the BPF program, the kernel module and a user-space library. The
 * user defines, before including this file,
 *
 *   VARID_WINDOW_AT(walk, addr, size)   size (at most VARID_SAVES_WINDOW) bytes of the process: where
 *                                       they can be read until the next call, or NULL
 *   VARID_ALONE_AT(walk, addr, size)    the same for at most VARID_WINDOW bytes that lie far from all others
 *   VARID_OFFSET(offset)                make an offset provably smaller than VARID_WINDOW, and
 *                                       a multiple of 4
 *
 * and owns the loop: varid_walk_start, then varid_walk_step until it returns something else
 * than VARID_WALK_FRAME; varid_pack_frame says what goes into a record. Most frames are
 * plain: a user in a hurry asks varid_plain_frame first. No allocation, no loops, every read
 * may fail, no value read is trusted for more than a bounded next read.
 *
 * A layout says which rule each stretch of the stack follows (varid_tunnel.h). `rules` is a
 * constant: VARID_RULE_BIT of each kind of rule that a layout may have here. Nothing is
 * compiled for the other kinds, so that a program for one kind is as short as that kind needs.
 */
#ifndef VARID_WALKER_H
#define VARID_WALKER_H

#include "varid_record.h"

#define VARID_WINDOW 64   /* bytes of a frame or fragment that are read at once */
#define VARID_SAVES_WINDOW 128 /* AT_SP: and of what a frame keeps of its caller */
#define VARID_WORD_MAX 8 /* bytes after the window that a word at its last offset reaches */
#define VARID_QUICK_TAG 3ull
#define VARID_GENERIC_JNI 1ull /* the tag of a native method's frame that its own code has not made */
#define VARID_LARGEST_FRAME (1u << 20) /* AT_SP: bytes; 65,535 registers and as many references */
#define VARID_CODE_HEADER 8 /* SIZED: bytes before a method's code */
#define VARID_OTHER_FRAME 1 /* SIZED: in place of a size: an interpreter's frame, which the rule does not describe */
#define VARID_PROLOGUE 64 /* SIZED: bytes of a method's code behind which its frame is complete; arm64 */
#define VARID_ARM64_RET 0xd65f03c0u
#define VARID_EM_X86_64 62 /* varid_layout.machine: calls leave the return address on the stack */
#define VARID_ARGUMENTS_FRAME 2 /* SIZED: the special method whose frame keeps the arguments of a call */

enum varid_walk_result {
	VARID_WALK_FRAME = 1, /* out holds a frame */
	VARID_WALK_AGAIN = 2, /* the VM's own frame was left: take another step */
	VARID_WALK_DROP = 3, /* all frames so far are none: forget them, and take another step */
	VARID_WALK_END = 0,
	VARID_WALK_TORN = -1,
};

struct varid_walk {
	varid_u64 base;     /* of the thread */
	varid_u64 next;     /* LIST: the next frame; SHADOW: records still to come; SAVE_AREA: the next area */
	varid_u64 quick;    /* a quick frame that comes before next; AT_SP: stack pointer of the next frame */
	varid_u64 fragment; /* the next outer fragment */
	varid_u64 reg_pc;   /* pc of the first frame, from a register; 0: from the frame. SAVE_AREA, AT_SP: of the next one, from what its callee keeps, too */
	varid_u64 frame;    /* AT_SP: reg_frame of the frame at quick; 0: a note led there, and its method says how large it is */
	varid_u64 cfa;      /* AT_SP: of the frame at quick, 0: frame leads to it */
	varid_u64 note;     /* SIZED: the quick frame of the innermost fragment, as the thread has noted it */
	varid_u32 is_outer;   /* SIZED: the innermost fragment was left */
	varid_u32 is_inner;   /* SIZED: the walk is in the innermost stretch of compiled frames, and what it finds may be none */
	varid_u32 is_generic; /* SIZED: the frame at quick is one of native_size, whatever code its method has */
};

/* What the registers of the interrupted thread say. Any may have tags. */
struct varid_leaf {
	varid_u64 ip;
	varid_u64 sp;
	varid_u64 frame; /* reg_frame + frame_bias of the rule whose body the ip is in, else 0 */
	varid_u64 pc;    /* reg_pc of that rule, else 0 */
	varid_u32 rule;  /* its index in the layout */
	varid_u32 state; /* AT_SP: VARID_STATE_* of the state that the ip is in; 0: none is known, frame and pc are those of the body */
	varid_u64 state_reg; /* AT_SP: what the state's register holds */
	varid_u64 link;      /* AT_SP, SIZED: the link register, where the machine has one */
	varid_s16 cfa_word;  /* AT_SP: of the state */
	varid_s16 cfa_bias;
};

#define VARID_NOTHING ((void *)0) /* NULL, also where no header has it */

#define VARID_MAY_HAVE(rules, kind) ((rules) & VARID_RULE_BIT(kind))

static inline __attribute__((always_inline)) varid_u64
varid_word(varid_u8 word, const varid_u8 *window, varid_u32 offset)
{
	const varid_u64 mask = word == 4 ? ~(varid_u32)0 : VARID_ADDRESS(~0ull);

	return *(const varid_u64 *)(window + VARID_OFFSET(offset)) & mask;
}

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

/* The AT_SP rule of quick frames, or NULL. */
static inline __attribute__((always_inline)) const struct varid_rule *
varid_quick_rule(const struct varid_layout *layout, const varid_u32 rules)
{
	const struct varid_rule *rule = &layout->rules[layout->quick_rule & (VARID_MAX_RULES - 1)];

	if (!VARID_MAY_HAVE(rules, VARID_RULE_AT_SP) || layout->quick_rule == VARID_NO_RULE)
		return VARID_NOTHING;
	return rule->kind == VARID_RULE_AT_SP ? rule : VARID_NOTHING;
}

/* The SIZED rule of quick frames, or NULL. */
static inline __attribute__((always_inline)) const struct varid_rule *
varid_sized_rule(const struct varid_layout *layout, const varid_u32 rules)
{
	const struct varid_rule *rule = &layout->rules[layout->quick_rule & (VARID_MAX_RULES - 1)];

	if (!VARID_MAY_HAVE(rules, VARID_RULE_SIZED) || layout->quick_rule == VARID_NO_RULE)
		return VARID_NOTHING;
	return rule->kind == VARID_RULE_SIZED ? rule : VARID_NOTHING;
}

/* Whether the code before a return address, or at an ip that is one less, follows a rule. */
static inline __attribute__((always_inline)) int
varid_returns_into(const struct varid_rule *rule, varid_u64 address)
{
	address = VARID_ADDRESS(address);
	return address > rule->code_start && address <= rule->code_end;
}

/* Where the area of the frame pointer is; 0: of none. */
static inline __attribute__((always_inline)) varid_u64
varid_area(const struct varid_layout *layout, varid_u64 frame)
{
	return frame ? VARID_ADDRESS(frame + layout->rules[0].frame_bias) : 0;
}

/* Nothing but the area is sure to be there: above it is the frame, which may end its stack. */
static inline __attribute__((always_inline)) const varid_u8 *
varid_area_at(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 at)
{
	return VARID_WINDOW_AT(walk, at, VARID_OFFSET((varid_u32)-layout->rules[0].frame_bias));
}

static inline __attribute__((always_inline)) int
varid_walk_state(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule,
		 const struct varid_leaf *leaf);

static inline __attribute__((always_inline)) void
varid_walk_inner(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule,
		 const struct varid_leaf *leaf);

/*
 * base: what tls_offset leads to. tid: as the process knows it; 0: the base is known to be
 * this thread's.
 * VARID_WALK_END: not a thread of the VM.
 */
static inline __attribute__((always_inline)) int
varid_walk_start(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules, varid_u64 base,
		 varid_u32 tid, const struct varid_leaf *leaf)
{
	const struct varid_rule *quick, *sized;
	const varid_u8 *window;

	base = VARID_ADDRESS(base);
	walk->base = base;
	walk->next = walk->quick = walk->fragment = walk->frame = walk->cfa = walk->note = 0;
	walk->is_outer = walk->is_inner = walk->is_generic = 0;
	walk->reg_pc = VARID_ADDRESS(leaf->pc);
	if (VARID_MAY_HAVE(rules, VARID_RULE_SHADOW) && layout->rules[0].kind == VARID_RULE_SHADOW) {
		const struct varid_shadow *shadow;

		window = VARID_WINDOW_AT(walk, base, sizeof(*shadow));
		if (!window)
			return VARID_WALK_TORN;
		shadow = (const struct varid_shadow *)window;
		if (shadow->tid != tid)
			return VARID_WALK_END;
		walk->next = shadow->depth;
		return walk->next > shadow->capacity ? VARID_WALK_TORN : VARID_WALK_FRAME;
	}
	if (tid) {
		window = VARID_WINDOW_AT(walk, base + layout->thread_tid, sizeof(varid_u32));
		if (!window)
			return VARID_WALK_TORN;
		if (*(const varid_u32 *)window != tid)
			return VARID_WALK_END;
	}
	if (VARID_MAY_HAVE(rules, VARID_RULE_SAVE_AREA) && layout->rules[0].kind == VARID_RULE_SAVE_AREA) {
		window = VARID_WINDOW_AT(walk, base + layout->thread_fragment, layout->word == 4 ? 4 : 8);
		if (!window)
			return VARID_WALK_TORN;
		walk->next = varid_area(layout, varid_word(layout->word, window, 0));
		/* A handler in need of registers puts them aside for a moment. */
		if (walk->next != VARID_ADDRESS(leaf->frame))
			walk->reg_pc = 0;
		return VARID_WALK_FRAME;
	}
	if (varid_walk_fragment(walk, layout, rules, base + layout->thread_fragment) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	quick = varid_quick_rule(layout, rules);
	if (quick && leaf->state)
		return varid_walk_state(walk, layout, quick, leaf);
	if (quick && leaf->frame && leaf->rule == layout->quick_rule) {
		/* Whatever note there is, it is of a call that is over. */
		walk->quick = VARID_ADDRESS(leaf->sp);
		walk->frame = VARID_ADDRESS(leaf->frame);
		return walk->reg_pc ? VARID_WALK_FRAME : VARID_WALK_TORN;
	}
	/* A frame is being made or left: neither registers nor notes tell where it is. */
	if (quick && varid_returns_into(quick, leaf->ip + 1))
		return VARID_WALK_TORN;
	if (varid_walk_begun(walk, leaf->sp, leaf->frame) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	sized = varid_sized_rule(layout, rules);
	if (sized && sized->code_end && !leaf->frame)
		varid_walk_inner(walk, layout, sized, leaf);
	return VARID_WALK_FRAME;
}

static inline __attribute__((always_inline)) int
varid_walk_shadow(struct varid_walk *walk, struct varid_frame *out)
{
	const struct varid_shadow_record *record;
	const varid_u8 *window;

	if (!walk->next)
		return VARID_WALK_END;
	walk->next--;
	window = VARID_WINDOW_AT(walk, walk->base + sizeof(struct varid_shadow) + walk->next * sizeof(*record),
				 sizeof(*record));
	if (!window)
		return VARID_WALK_TORN;
	record = (const struct varid_shadow_record *)window;
	out->addr = VARID_ADDRESS(record->sp);
	out->method = 0;
	out->pc = VARID_ADDRESS(record->method);
	out->flags = 0;
	return VARID_WALK_FRAME;
}

/*
 * A frame's pc is in the area of what it called. Across a break, and of the innermost frame
 * outside the loop's body, there is only what the frame has exported, for whatever it was at
 * then; a native method never has.
 */
static inline __attribute__((always_inline)) int
varid_walk_area(struct varid_walk *walk, const struct varid_layout *layout, struct varid_frame *out)
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
	/* As fragments: callers lie above. No break is followed by another. */
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

/* An offset within VARID_SAVES_WINDOW, as VARID_OFFSET. */
#define VARID_SAVES_OFFSET(offset) ((offset) & (VARID_SAVES_WINDOW - 4))

static inline __attribute__((always_inline)) varid_u64
varid_saved_word(varid_u8 word, const varid_u8 *window, varid_u32 offset)
{
	const varid_u64 mask = word == 4 ? ~(varid_u32)0 : VARID_ADDRESS(~0ull);

	return *(const varid_u64 *)(window + VARID_SAVES_OFFSET(offset)) & mask;
}

static inline __attribute__((always_inline)) varid_u32 varid_larger(varid_u32 one, varid_u32 other)
{
	return one > other ? one : other;
}

/* AT_SP: how far below its CFA a frame keeps the first of what it keeps of its caller. */
static inline __attribute__((always_inline)) varid_u32 varid_saved_below(const struct varid_rule *rule)
{
	return VARID_SAVES_OFFSET(varid_larger(rule->saved_pc, varid_larger(rule->saved_frame, rule->saved_return)));
}

/* AT_SP: a frame whose interpreter runs no instruction of it: it keeps all that it ever will. */
#define VARID_STATE_COMPLETE (VARID_STATE_SAVED_PC | VARID_STATE_SAVED_FRAME | VARID_STATE_SAVED_RETURN)

/*
 * AT_SP: goes from a frame to its caller's, by what the frame keeps below its CFA. What it does not keep yet, or no longer
 * (state), the leaf's registers hold; leaf may be NULL if it keeps all.
 * VARID_WALK_END: the caller is none of this stretch.
 */
static inline __attribute__((always_inline)) int
varid_walk_leave(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule, varid_u64 cfa,
		 varid_u32 state, const struct varid_leaf *leaf)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	/* The word at the CFA is the caller's method. */
	const varid_u32 below = state & VARID_STATE_COMPLETE ? varid_saved_below(rule) : 0; /* else the stack may end here */
	const varid_u32 size = VARID_SAVES_OFFSET(below + word);
	const varid_u8 *window;
	varid_u64 method, returns;

	/* Where calls leave the return address in a register, a frame of which nothing is saved has no bytes yet, or no longer. */
	if (cfa < walk->quick || (state & VARID_STATE_SAVED_RETURN && cfa == walk->quick) ||
	    cfa - walk->quick > VARID_LARGEST_FRAME)
		return VARID_WALK_TORN;
	window = VARID_WINDOW_AT(walk, cfa - below, size);
	if (!window)
		return VARID_WALK_TORN;
	method = varid_saved_word(word, window, below);
	returns = state & VARID_STATE_SAVED_RETURN ? varid_saved_word(word, window, below - rule->saved_return) : leaf->link;
	walk->quick = walk->frame = walk->reg_pc = walk->cfa = 0;
	if (!method || !varid_returns_into(rule, returns))
		return VARID_WALK_END;
	walk->quick = cfa;
	walk->frame = state & VARID_STATE_SAVED_FRAME ? varid_saved_word(word, window, below - rule->saved_frame) : leaf->frame;
	walk->reg_pc = state & VARID_STATE_SAVED_PC ? varid_saved_word(word, window, below - rule->saved_pc) : leaf->pc;
	return walk->frame && walk->reg_pc ? VARID_WALK_FRAME : VARID_WALK_TORN;
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
varid_walk_state(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule,
		 const struct varid_leaf *leaf)
{
	varid_u64 cfa;

	/* Whatever note there is, it is of a call that is over. */
	walk->quick = VARID_ADDRESS(leaf->sp);
	cfa = varid_cfa(walk, layout, leaf->state_reg, leaf->cfa_word, leaf->cfa_bias);
	if (!cfa)
		return VARID_WALK_TORN;
	if (leaf->state & VARID_STATE_HAS_PC) {
		walk->frame = VARID_ADDRESS(leaf->frame);
		walk->cfa = cfa;
		return walk->frame && walk->reg_pc ? VARID_WALK_FRAME : VARID_WALK_TORN;
	}
	return varid_walk_leave(walk, layout, rule, cfa, leaf->state, leaf) == VARID_WALK_TORN ? VARID_WALK_TORN :
												 VARID_WALK_FRAME;
}

/* AT_SP: bytes of a frame that a note led to, and whether it is a special method's; 0: it is of no known kind. */
static inline __attribute__((always_inline)) varid_u32
varid_noted_size(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule,
		 varid_u64 method, int *is_special)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const varid_u8 *window;
	varid_u32 size = 0, i;

	*is_special = 0;
	if (rule->special_count) {
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
		*is_special = size != 0;
	}
	if (size || !rule->native_flag)
		return size;
	window = VARID_ALONE_AT(walk, method + rule->method_flags, sizeof(varid_u32));
	if (window && *(const varid_u32 *)window & rule->native_flag)
		size = rule->native_size;
	return size;
}

/*
 * A frame that a note led to has no pc, as it is of a method without bytecode. Each of its callers
 * has its pc and its way to the next one in what its callee keeps.
 */
static inline __attribute__((always_inline)) int
varid_walk_at_sp(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule,
		 struct varid_frame *out)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const varid_u8 *window;
	varid_u64 cfa;
	int result, is_special = 0;

	out->method = 0;
	out->flags = 0;
	if (!walk->frame) {
		window = VARID_WINDOW_AT(walk, walk->quick, word);
		if (!window)
			return VARID_WALK_TORN;
		out->method = varid_word(word, window, 0);
		cfa = walk->quick + varid_noted_size(walk, layout, rule, out->method, &is_special);
		out->flags = VARID_FRAME_QUICK;
		if (is_special) {
			result = varid_walk_leave(walk, layout, rule, cfa, VARID_STATE_COMPLETE, VARID_NOTHING);
			return result == VARID_WALK_TORN ? result : VARID_WALK_AGAIN;
		}
	} else {
		cfa = walk->cfa ? walk->cfa : varid_cfa(walk, layout, walk->frame, rule->cfa_word, rule->cfa_bias);
	}
	out->addr = walk->quick;
	out->pc = walk->reg_pc;
	result = varid_walk_leave(walk, layout, rule, cfa, VARID_STATE_COMPLETE, VARID_NOTHING);
	if (result == VARID_WALK_TORN)
		return result;
	if (result == VARID_WALK_END)
		out->flags |= VARID_FRAME_OUTERMOST;
	return VARID_WALK_FRAME;
}

/* SIZED: what is before a method's code. */
struct varid_method_code {
	varid_u64 entry;
	varid_u32 distance; /* from what describes the code */
	varid_u32 size;     /* bytes; VARID_STUB_SIZE: one of the VM's stubs, which has no header */
};

#define VARID_STUB_SIZE 0x7fffffffu

/* SIZED: the code that a method's entry leads to; 0: it cannot be read. */
static inline __attribute__((always_inline)) int
varid_code_at(struct varid_walk *walk, varid_u64 entry, struct varid_method_code *code)
{
	const varid_u8 *window = VARID_ALONE_AT(walk, entry - VARID_CODE_HEADER, VARID_CODE_HEADER);

	if (!window)
		return 0;
	code->entry = entry;
	code->distance = *(const varid_u32 *)window;
	/* Its highest bit is a flag. */
	code->size = *(const varid_u32 *)(window + 4) & 0x7fffffff;
	return 1;
}

/* Whether a return address is in some code. */
static inline __attribute__((always_inline)) int varid_returns_to(const struct varid_method_code *code, varid_u64 returns)
{
	return code->size != VARID_STUB_SIZE && returns > code->entry && returns - code->entry <= code->size;
}

/* SIZED: bytes of the frames of some code; 0: it says none; VARID_OTHER_FRAME: an interpreter's. */
static inline __attribute__((always_inline)) varid_u32
varid_frame_of_code(struct varid_walk *walk, const struct varid_method_code *code)
{
	const varid_u8 *window;
	varid_u32 first, second;
	varid_u64 info;

	if (code->distance <= VARID_CODE_HEADER)
		return VARID_OTHER_FRAME;
	window = VARID_ALONE_AT(walk, code->entry - code->distance, sizeof(info));
	if (!window)
		return 0;
	info = *(const varid_u64 *)window;
	/* Six numbers of four bits; of one above 11 that many bytes follow, less 11. The first has flags, the second is the size. */
	first = info & 15;
	second = info >> 4 & 15;
	if (first > 11 || second > 13)
		return 0;
	if (second > 11)
		second = info >> 24 & (second == 12 ? 0xff : 0xffff);
	return second * 16;
}

/*
 * SIZED: bytes of the frames of a method's code, by the header before the code; 0: the method's code is not the one that is
 * returned to (0: to none), or says no size; VARID_OTHER_FRAME: the frame is of other code that the method is executed by.
 */
static inline __attribute__((always_inline)) varid_u32
varid_code_frame_size(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule, varid_u64 method,
		      varid_u64 returns)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const varid_u8 *window;
	struct varid_method_code code;

	window = VARID_ALONE_AT(walk, method + rule->method_entry, word);
	if (!window || !varid_code_at(walk, varid_word(word, window, 0), &code))
		return 0;
	/* A stub that a note leads to is a proxy's, and keeps all arguments. */
	if (code.size == VARID_STUB_SIZE)
		return returns ? 0 : rule->special_sizes[VARID_ARGUMENTS_FRAME];
	if (returns && !varid_returns_to(&code, returns))
		return 0;
	return varid_frame_of_code(walk, &code);
}

/*
 * SIZED: where the frame of the caller is, and where in its code, of a leaf in compiled code; 0: that is not known. Who unwinds the
 * leaf by all that is known of its code finds the same frame, or this one is none.
 *
 * Behind its prologue a method's frame has the method at the stack pointer. Before it, in an epilogue and in a method that needs no frame
 * there is the caller's frame, with nothing or the return address below.
 */
static inline __attribute__((always_inline)) int
varid_walk_leaf(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule, const struct varid_leaf *leaf)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const int is_linked = layout->machine != VARID_EM_X86_64;
	const varid_u64 sp = VARID_ADDRESS(leaf->sp), ip = VARID_ADDRESS(leaf->ip);
	varid_u64 method, returns;
	const varid_u8 *window;
	struct varid_method_code code;
	varid_u32 size, flags;

	window = VARID_ALONE_AT(walk, sp, word);
	if (!window)
		return 0;
	method = varid_word(word, window, 0);
	returns = is_linked ? VARID_ADDRESS(leaf->link) : method;
	walk->reg_pc = returns;
	walk->quick = is_linked ? sp : sp + word;
	/* What no frame is made for, or not yet: a return address is no method. */
	if (!is_linked && varid_returns_into(rule, returns))
		return 1;
	if (rule->method_entry > VARID_WINDOW - 2 * VARID_WORD_MAX || rule->method_flags > rule->method_entry)
		return 0;
	window = VARID_ALONE_AT(walk, method, rule->method_entry + word);
	if (!window)
		return 0;
	flags = *(const varid_u32 *)(window + VARID_OFFSET(rule->method_flags));
	if (!varid_code_at(walk, varid_word(word, window, rule->method_entry), &code))
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
	size = varid_frame_of_code(walk, &code);
	if (size < 2 * word)
		return 0;
	walk->quick = sp + size;
	window = VARID_ALONE_AT(walk, sp + size - word, 2 * word);
	if (!window)
		return 0;
	walk->reg_pc = varid_word(word, window, 0);
	/* Native code has called the leaf. */
	if (!varid_word(word, window, word)) {
		walk->quick = walk->reg_pc = 0;
		return 1;
	}
	/* The return address is saved last; before the first call it is in its register, too. */
	if (is_linked && ip - code.entry < VARID_PROLOGUE && walk->reg_pc != returns)
		return 0;
	return walk->reg_pc != 0;
}

/*
 * SIZED: begins with the innermost stretch of compiled frames: with the caller's of a leaf in compiled code, else with what the thread
 * has noted, which compiled code leaves behind.
 */
static inline __attribute__((always_inline)) void
varid_walk_inner(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule,
		 const struct varid_leaf *leaf)
{
	walk->note = walk->quick;
	if (varid_returns_into(rule, leaf->ip + 1)) {
		walk->is_inner = varid_walk_leaf(walk, layout, rule, leaf);
		if (walk->is_inner)
			return;
		walk->quick = walk->note;
		walk->reg_pc = 0;
	}
}

/*
 * SIZED: a frame that a note led to is one of the VM's own, which is left out, or a native method's. Each of its callers is in
 * the code that its callee returns to.
 */
static inline __attribute__((always_inline)) int
varid_walk_sized(struct varid_walk *walk, const struct varid_layout *layout, const struct varid_rule *rule, struct varid_frame *out)
{
	const varid_u32 word = layout->word == 4 ? 4 : 8;
	const varid_u8 *window;
	varid_u32 size;
	varid_u64 cfa;
	int is_special = 0;

	window = VARID_WINDOW_AT(walk, walk->quick, word);
	if (!window)
		return VARID_WALK_TORN;
	out->addr = walk->quick;
	out->method = varid_word(word, window, 0);
	out->pc = walk->reg_pc;
	out->flags = walk->reg_pc ? VARID_FRAME_COMPILED : VARID_FRAME_QUICK;
	size = walk->reg_pc ? 0 : varid_noted_size(walk, layout, rule, out->method, &is_special);
	if (walk->reg_pc || (!is_special && !walk->is_generic))
		size = varid_code_frame_size(walk, layout, rule, out->method, walk->reg_pc);
	/*
	 * A frame that this rule does not describe ends its stretch: its pc and its callers are not known, those of the next
	 * fragment are.
	 */
	if (size == VARID_OTHER_FRAME || (!size && !walk->reg_pc)) {
		walk->quick = walk->reg_pc = 0;
		out->pc = 0;
		return VARID_WALK_FRAME;
	}
	if (!size)
		return VARID_WALK_TORN;
	cfa = walk->quick + size;
	window = VARID_WINDOW_AT(walk, cfa - word, 2 * word);
	if (!window)
		return VARID_WALK_TORN;
	walk->reg_pc = varid_word(word, window, 0);
	walk->quick = cfa;
	if (!varid_word(word, window, word)) {
		walk->quick = walk->reg_pc = 0;
		out->flags |= VARID_FRAME_OUTERMOST;
	} else if (!walk->reg_pc) {
		return VARID_WALK_TORN;
	}
	return is_special ? VARID_WALK_AGAIN : VARID_WALK_FRAME;
}

static inline __attribute__((always_inline)) int
varid_walk_step(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules,
		struct varid_frame *out)
{
	const struct varid_rule *rule = &layout->rules[0], *quick, *sized;
	const varid_u8 *window;
	varid_u64 at, insns, pc;

	if (VARID_MAY_HAVE(rules, VARID_RULE_SHADOW) && rule->kind == VARID_RULE_SHADOW)
		return varid_walk_shadow(walk, out);
	if (VARID_MAY_HAVE(rules, VARID_RULE_SAVE_AREA) && rule->kind == VARID_RULE_SAVE_AREA)
		return varid_walk_area(walk, layout, out);

	if (!walk->next && !walk->quick) {
		if (!walk->fragment)
			return VARID_WALK_END;
		if (varid_walk_fragment(walk, layout, rules, walk->fragment) != VARID_WALK_FRAME)
			return VARID_WALK_TORN;
		walk->is_outer = 1;
	}
	if (walk->quick) {
		quick = varid_quick_rule(layout, rules);
		if (quick)
			return varid_walk_at_sp(walk, layout, quick, out);
		/* Compiled code leaves behind the note of a call that is over. In an outer fragment it has called what is there. */
		sized = varid_sized_rule(layout, rules);
		if (sized && walk->is_outer)
			return varid_walk_sized(walk, layout, sized, out);
		if (sized && walk->is_inner) {
			const int result = varid_walk_sized(walk, layout, sized, out);

			/* An interpreter's frame is one that only unwinding leaves. */
			if (result != VARID_WALK_TORN && (out->pc || result == VARID_WALK_AGAIN || out->flags & VARID_FRAME_QUICK))
				return result;
			walk->quick = walk->note;
			walk->reg_pc = walk->is_inner = 0;
			return VARID_WALK_DROP;
		}
		at = walk->quick;
		walk->quick = 0;
		out->addr = at;
		out->pc = 0;
		out->flags = VARID_FRAME_QUICK;
		window = VARID_WINDOW_AT(walk, at, layout->word == 4 ? 4 : 8);
		if (!window)
			return VARID_WALK_TORN;
		out->method = varid_word(layout->word, window, 0);
		return VARID_WALK_FRAME;
	}
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

/* SIZED: whether a frame is of the innermost stretch, and may be none. */
static inline __attribute__((always_inline)) int varid_is_inner(const struct varid_walk *walk, const struct varid_frame *frame)
{
	return walk->is_inner && !walk->is_outer && frame->flags & VARID_FRAME_COMPILED;
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

/* A frame as a record has it: one or two entries, which it returns. */
static inline __attribute__((always_inline)) int
varid_pack_frame(const struct varid_frame *frame, struct varid_packed_frame *out)
{
	out[0].addr = VARID_ADDRESS(frame->addr) | frame->flags << VARID_FRAME_FLAGS_SHIFT;
	out[0].what = frame->flags & (VARID_FRAME_QUICK | VARID_FRAME_PAIR) ? frame->method : frame->pc;
	if (!(frame->flags & VARID_FRAME_PAIR))
		return 1;
	out[1].addr = 0;
	out[1].what = frame->pc;
	return 2;
}

#endif
