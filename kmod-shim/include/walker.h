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
	varid_u64 next;     /* LIST: the next frame; SHADOW: records still to come */
	varid_u64 quick;    /* LIST: a quick frame that comes before next */
	varid_u64 fragment; /* LIST: the next outer fragment */
	varid_u64 reg_pc;   /* pc of the first frame, from a register; 0: from the frame */
};

static inline __attribute__((always_inline)) varid_u64
varid_word(const struct varid_layout *layout, const varid_u8 *window, varid_u32 offset)
{
	const varid_u64 mask = layout->word == 4 ? ~(varid_u32)0 : VARID_ADDRESS(~0ull);

	return *(const varid_u64 *)(window + VARID_OFFSET(offset)) & mask;
}

/* Takes in the fragment at addr: its quick frame, its top frame, the next one out. */
static inline __attribute__((always_inline)) int
varid_walk_fragment(struct varid_walk *walk, const struct varid_layout *layout, varid_u64 addr)
{
	const varid_u8 *window = VARID_WINDOW_AT(walk, addr, VARID_WINDOW);

	if (!window)
		return VARID_WALK_TORN;
	walk->quick = varid_word(layout, window, layout->fragment_quick) & ~VARID_QUICK_TAG;
	walk->next = varid_word(layout, window, layout->fragment_top);
	walk->fragment = varid_word(layout, window, layout->fragment_link);
	return VARID_WALK_FRAME;
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
	sp = VARID_ADDRESS(sp);
	reg_frame = VARID_ADDRESS(reg_frame);
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
	if (varid_walk_fragment(walk, layout, base + layout->thread_fragment) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	/* Compiled code leaves behind what it last told the VM; a frame below sp is no more. */
	if (walk->quick < sp)
		walk->quick = 0;
	if (reg_frame && (walk->next != reg_frame || walk->quick))
		return VARID_WALK_TORN;
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

static inline __attribute__((always_inline)) int
varid_walk_step(struct varid_walk *walk, const struct varid_layout *layout, struct varid_frame *out)
{
	const varid_u8 *window;
	varid_u64 at, insns, pc;

	if (layout->kind == VARID_LAYOUT_SHADOW)
		return varid_walk_shadow(walk, out);

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
 * Is the frame at, whose bytes are in the window, plain: its pc known, its caller above it or
 * none? Then varid_walk_step, if no quick frame comes before, would give it this packed
 * form and the same next frame.
 */
static inline __attribute__((always_inline)) int
varid_plain_frame(const struct varid_layout *layout, const varid_u8 *window, varid_u64 at,
		  varid_u64 reg_pc, varid_u64 *next, struct varid_packed_frame *out)
{
	varid_u64 pc = reg_pc ? reg_pc : varid_word(layout, window, layout->frame_pc);

	*next = varid_word(layout, window, layout->frame_link);
	if (!pc || (*next && *next <= at))
		return 0;
	out->addr = *next ? at : at | VARID_FRAME_OUTERMOST << VARID_FRAME_FLAGS_SHIFT;
	out->what = pc;
	return 1;
}

/* A frame as a record has it: one or two entries, which it returns. */
static inline __attribute__((always_inline)) int
varid_pack_frame(const struct varid_frame *frame, struct varid_packed_frame *out)
{
	out[0].addr = VARID_ADDRESS(frame->addr) | frame->flags << VARID_FRAME_FLAGS_SHIFT;
	out[0].what = frame->flags & (VARID_FRAME_QUICK | VARID_FRAME_RELATIVE) ? frame->method : frame->pc;
	if (!(frame->flags & VARID_FRAME_RELATIVE))
		return 1;
	out[1].addr = 0;
	out[1].what = frame->pc;
	return 2;
}

#endif
