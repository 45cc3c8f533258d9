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
#define VARID_SAVES_WINDOW 128 /* and of what a quick frame keeps of its caller */
#define VARID_WORD_MAX 8 /* bytes after the window that a word at its last offset reaches */
#define VARID_QUICK_TAG 3ull
#define VARID_GENERIC_JNI 1ull /* the tag of a native method's frame that its own code has not made */

enum varid_walk_result {
	VARID_WALK_FRAME = 1, /* out holds a frame */
	VARID_WALK_AGAIN = 2, /* the VM's own frame was left: take another step */
	VARID_WALK_DROP = 3, /* all frames so far are none: forget them, and take another step */
	VARID_WALK_END = 0,
	VARID_WALK_TORN = -1,
};

/* What is known of the next quick frame. */
enum varid_quick_kind {
	VARID_QUICK_NOTED = 0, /* a note leads to it: its method says how large it is */
	VARID_QUICK_AT_SP,     /* an interpreter's */
	VARID_QUICK_COMPILED,
};

/* How the innermost stretch of quick frames is walked where there is compiled code. */
enum varid_inner {
	VARID_INNER_NONE = 0, /* not: it is what the thread has noted */
	VARID_INNER_KNOWN,    /* the interpreter's registers lead to it */
	VARID_INNER_TRIED,    /* from a leaf in compiled code: what it finds may be none */
};

struct varid_walk {
	varid_u64 base;     /* of the thread */
	varid_u64 next;     /* LIST: the next frame; SHADOW: records still to come; SAVE_AREA: the next area */
	varid_u64 quick;    /* stack pointer of a quick frame that comes before next; 0: there is none */
	varid_u64 fragment; /* the next outer fragment */
	varid_u64 reg_pc;   /* pc of the first frame, from a register; 0: from the frame. SAVE_AREA: of the next one, from what its callee keeps, too */
	varid_u64 frame;    /* what AT_SP's reg_frame holds in the frame at quick, as reg_pc is what its reg_pc holds there */
	varid_u64 cfa;      /* AT_SP: of the frame at quick, 0: frame leads to it */
	varid_u64 returns;  /* the return address of what the frame at quick has called */
	varid_u64 note;     /* the quick frame of the innermost fragment, as the thread has noted it */
	varid_u32 kind;       /* enum varid_quick_kind */
	varid_u32 inner;      /* enum varid_inner */
	varid_u32 is_outer;   /* the innermost fragment was left */
	varid_u32 is_generic; /* the frame that was noted is one of native_size, whatever code its method has */
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
	varid_u64 quick_frame; /* AT_SP: reg_frame, wherever the ip is */
	varid_u64 quick_pc;    /* AT_SP: reg_pc, wherever the ip is */
	varid_u64 link;      /* quick frames: the link register, where the machine has one */
	varid_s16 cfa_word;  /* AT_SP: of the state */
	varid_s16 cfa_bias;
};

#define VARID_MAY_HAVE(rules, kind) ((rules) & VARID_RULE_BIT(kind))

static inline __attribute__((always_inline)) varid_u64
varid_word(varid_u8 word, const varid_u8 *window, varid_u32 offset)
{
	const varid_u64 mask = word == 4 ? ~(varid_u32)0 : VARID_ADDRESS(~0ull);

	return *(const varid_u64 *)(window + VARID_OFFSET(offset)) & mask;
}

/* An offset within VARID_SAVES_WINDOW, as VARID_OFFSET. */
#define VARID_SAVES_OFFSET(offset) ((offset) & (VARID_SAVES_WINDOW - 4))

static inline __attribute__((always_inline)) varid_u64
varid_saved_word(varid_u8 word, const varid_u8 *window, varid_u32 offset)
{
	const varid_u64 mask = word == 4 ? ~(varid_u32)0 : VARID_ADDRESS(~0ull);

	return *(const varid_u64 *)(window + VARID_SAVES_OFFSET(offset)) & mask;
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

#include "quick_frames.h"

/*
 * base: what tls_offset leads to. tid: as the process knows it; 0: the base is known to be
 * this thread's.
 * VARID_WALK_END: not a thread of the VM.
 */
static inline __attribute__((always_inline)) int
varid_walk_start(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules, varid_u64 base,
		 varid_u32 tid, const struct varid_leaf *leaf)
{
	struct varid_quick_rules quick;
	int is_interpreter = 0;
	const varid_u8 *window;

	base = VARID_ADDRESS(base);
	walk->base = base;
	walk->next = walk->fragment = 0;
	walk->inner = VARID_INNER_NONE;
	walk->is_outer = walk->is_generic = 0;
	varid_end_stretch(walk);
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
	quick = varid_quick_rules(layout, rules);
	walk->note = walk->quick < VARID_ADDRESS(leaf->sp) ? 0 : walk->quick;
	if (quick.has_at_sp)
		is_interpreter = leaf->state || (leaf->frame && leaf->rule == layout->quick_rule) ||
				 varid_returns_into(quick.at_sp, leaf->ip + 1);
	if (is_interpreter) {
		if (varid_walk_interpreter(walk, layout, &quick, leaf) == VARID_WALK_FRAME) {
			walk->inner = VARID_INNER_KNOWN;
			return VARID_WALK_FRAME;
		}
		/* Where there is compiled code, unwinding leads from a frame that is not complete. */
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

static inline __attribute__((always_inline)) int
varid_walk_step(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules,
		struct varid_frame *out)
{
	const struct varid_rule *rule = &layout->rules[0];
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
	if (walk->quick)
		return varid_step_quick(walk, layout, rules, out);
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

/* Whether the frames that come first are of a stretch that is tried: they may be none. */
static inline __attribute__((always_inline)) int varid_is_tried(const struct varid_walk *walk)
{
	return walk->inner == VARID_INNER_TRIED && walk->quick;
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
