/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The walker: from a thread's base to its managed frames, one frame a step.
 *
 * Compiled into the BPF program, the kernel module and a user-space library. The
 * user defines, before including this file,
 *
 *   VARID_WINDOW_AT(walk, addr, size)   size (at most VARID_WINDOW) bytes of the process: where
 *                                       they can be read until the next call, or NULL
 *   VARID_OFFSET(offset)                make an offset provably smaller than VARID_WINDOW, and
 *                                       a multiple of 4
 *
 * and owns the loop: varid_walk_start, then varid_walk_step until it returns something else
 * than VARID_WALK_FRAME; varid_pack_frame says what goes into a record. Most frames are
 * plain: a user in a hurry asks varid_plain_frame first. No allocation, no loops, every read
 * may fail, no value read is trusted for more than a bounded next read.
 */
#ifndef VARID_WALKER_H
#define VARID_WALKER_H

#include "varid_record.h"

#define VARID_WINDOW 64   /* bytes of a frame or fragment that are read at once */
#define VARID_WORD_MAX 8 /* bytes after the window that a word at its last offset reaches */
#define VARID_QUICK_TAG 3ull

enum varid_walk_result {
	VARID_WALK_FRAME = 1, /* out holds a frame */
	VARID_WALK_END = 0,
	VARID_WALK_TORN = -1,
};

struct varid_walk {
	varid_u64 base;     /* of the thread */
	varid_u64 next;     /* LIST: the next frame; SHADOW: records still to come; SAVE_AREAS: the next area */
	varid_u64 quick;    /* LIST: a quick frame that comes before next */
	varid_u64 fragment; /* LIST: the next outer fragment */
	varid_u64 reg_pc;   /* pc of the first frame, from a register; 0: from the frame. SAVE_AREAS: of the next one, from its callee's area, too */
};

static inline __attribute__((always_inline)) varid_u64
varid_word(const struct varid_layout *layout, const varid_u8 *window, varid_u32 offset)
{
	const varid_u64 mask = layout->word == 4 ? ~(varid_u32)0 : VARID_ADDRESS(~0ull);

	return *(const varid_u64 *)(window + VARID_OFFSET(offset)) & mask;
}

/* Takes in a fragment: its quick frame, its top frame, the next one out. */
static inline __attribute__((always_inline)) void
varid_walk_into(struct varid_walk *walk, varid_u64 quick, varid_u64 top, varid_u64 link)
{
	walk->quick = quick & ~VARID_QUICK_TAG;
	walk->next = top;
	walk->fragment = link;
}

/* The same with the fragment at addr. */
static inline __attribute__((always_inline)) int
varid_walk_fragment(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 addr)
{
	const varid_u8 *window = VARID_WINDOW_AT(walk, addr, VARID_WINDOW);

	if (!window)
		return VARID_WALK_TORN;
	varid_walk_into(walk, varid_word(layout, window, layout->fragment_quick),
			varid_word(layout, window, layout->fragment_top),
			varid_word(layout, window, layout->fragment_link));
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
	return frame ? VARID_ADDRESS(frame + layout->reg_frame_bias) : 0;
}

/* Nothing but the area is sure to be there: above it is the frame, which may end its stack. */
static inline __attribute__((always_inline)) const varid_u8 *
varid_area_at(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 at)
{
	return VARID_WINDOW_AT(walk, at, VARID_OFFSET((varid_u32)-layout->reg_frame_bias));
}

/*
 * base: what tls_offset leads to. tid: as the process knows it; 0: the base is known to be
 * this thread's. sp: the thread's stack pointer. reg_frame, reg_pc: if the ip is in the
 * loop's body, else 0. All may have tags.
 * VARID_WALK_END: not a thread of the VM.
 */
static inline __attribute__((always_inline)) int
varid_walk_start(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 base,
		 varid_u32 tid, varid_u64 sp, varid_u64 reg_frame, varid_u64 reg_pc)
{
	const varid_u8 *window;

	base = VARID_ADDRESS(base);
	walk->base = base;
	walk->next = walk->quick = walk->fragment = 0;
	walk->reg_pc = VARID_ADDRESS(reg_pc);
	if (layout->kind == VARID_LAYOUT_SHADOW) {
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
	if (layout->kind == VARID_LAYOUT_SAVE_AREAS) {
		window = VARID_WINDOW_AT(walk, base + layout->thread_fragment, layout->word == 4 ? 4 : 8);
		if (!window)
			return VARID_WALK_TORN;
		walk->next = varid_area(layout, varid_word(layout, window, 0));
		/* A handler in need of registers puts them aside for a moment. */
		if (walk->next != VARID_ADDRESS(reg_frame))
			walk->reg_pc = 0;
		return VARID_WALK_FRAME;
	}
	if (varid_walk_fragment(walk, layout, base + layout->thread_fragment) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	return varid_walk_begun(walk, sp, reg_frame);
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
	const varid_u8 *window;
	varid_u64 at = walk->next, next;

	if (!at)
		return VARID_WALK_END;
	window = varid_area_at(walk, layout, at);
	if (!window)
		return VARID_WALK_TORN;
	next = varid_area(layout, varid_word(layout, window, layout->frame_link));
	out->method = varid_word(layout, window, layout->frame_method);
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
		next = varid_area(layout, varid_word(layout, window, layout->frame_link));
		out->method = varid_word(layout, window, layout->frame_method);
	}
	/* As fragments: callers lie above. No break is followed by another. */
	if (!out->method || (next && next <= at))
		return VARID_WALK_TORN;
	out->addr = at;
	out->flags = 0;
	out->pc = walk->reg_pc;
	if (!out->pc) {
		out->pc = varid_word(layout, window, layout->frame_pc);
		out->flags = VARID_FRAME_EXPORTED;
	}
	walk->reg_pc = varid_word(layout, window, layout->frame_caller_pc);
	if (!next || !walk->reg_pc)
		out->flags |= VARID_FRAME_OUTERMOST;
	walk->next = next;
	return VARID_WALK_FRAME;
}

static inline __attribute__((always_inline)) int
varid_walk_step(struct varid_walk *walk, const struct varid_layout *layout, struct varid_frame *out)
{
	const varid_u8 *window;
	varid_u64 at, insns, pc;

	if (layout->kind == VARID_LAYOUT_SHADOW)
		return varid_walk_shadow(walk, out);
	if (layout->kind == VARID_LAYOUT_SAVE_AREAS)
		return varid_walk_area(walk, layout, out);

	if (!walk->next && !walk->quick) {
		if (!walk->fragment)
			return VARID_WALK_END;
		if (varid_walk_fragment(walk, layout, walk->fragment) != VARID_WALK_FRAME)
			return VARID_WALK_TORN;
	}
	if (walk->quick) {
		at = walk->quick;
		walk->quick = 0;
		out->addr = at;
		out->pc = 0;
		out->flags = VARID_FRAME_QUICK;
		window = VARID_WINDOW_AT(walk, at, layout->word == 4 ? 4 : 8);
		if (!window)
			return VARID_WALK_TORN;
		out->method = varid_word(layout, window, 0);
		return VARID_WALK_FRAME;
	}
	at = walk->next;
	if (!at)
		return VARID_WALK_END;
	window = VARID_WINDOW_AT(walk, at, VARID_WINDOW);
	if (!window)
		return VARID_WALK_TORN;
	walk->next = varid_word(layout, window, layout->frame_link);
	/* The stack grows down: a caller's frame lies above, and no chain can be a cycle. */
	if (walk->next && walk->next <= at)
		return VARID_WALK_TORN;
	insns = varid_word(layout, window, layout->frame_insns);
	pc = walk->reg_pc;
	walk->reg_pc = 0;
	if (!pc)
		pc = varid_word(layout, window, layout->frame_pc);
	out->flags = walk->next ? 0 : VARID_FRAME_OUTERMOST;
	if (!pc) {
		pc = 2ull * *(varid_u32 *)(window + VARID_OFFSET(layout->frame_index));
		if (insns)
			pc += insns;
		else
			out->flags |= VARID_FRAME_RELATIVE;
	}
	out->addr = at;
	out->pc = pc;
	out->method = varid_word(layout, window, layout->frame_method);
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
