/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Walks a thread's managed frames: walker.h over copies of the process's memory, with a fast path for
 * the common case that reads single words. Both paths have the same result.
 */
#ifndef VARID_MODULE_FRAMES_H
#define VARID_MODULE_FRAMES_H

#include <linux/string.h>

#include "arch.h"
#include "compat.h"
#include "varid.h"

/* The walker's reads try the tunnel's memory first. */
struct varid_walk;
static const u8 *varid_window(struct varid_walk *walk, u64 addr, u32 size);
#define VARID_WINDOW_AT(walk, addr, size) varid_window(walk, addr, size)
#define VARID_ALONE_AT(walk, addr, size) varid_window(walk, addr, size)
#define VARID_OFFSET(offset) ((offset) & (VARID_WINDOW - 4))
#include "walker.h"
#include "signal_frame.h"

#define OUT_MAX 65400 /* of a record's 65,535 bytes */
#define OWN_FRAMES 40 /* frames of the interrupt, on top of the interrupted function */

/* The working memory of an overflow. The record is assembled in it. */
struct varid_scratch {
	struct varid_walk walk;
	const struct varid_layout *layout;
	const struct varid_tunnel_memory *tunnel;
	u8 window[VARID_SAVES_WINDOW + VARID_WORD_MAX] __aligned(8);
	u64 reach; /* address of the innermost frame that is not a quick frame */
#if VARID_HAS_SIGNAL_FRAME
	u8 ucontext[VARID_UCONTEXT_BYTES] __aligned(8);
	u64 ucontext_below; /* distance of the last one from the end of its alternate stack; 0: none was found */
	u64 handler_regs[VARID_REGS]; /* the record's registers while the interrupted ones replace them */
#endif
	u64 signal_stack_end; /* VARID_INTERRUPTED: end of the unwound part of the alternate stack */
	unsigned long kernel[OWN_FRAMES + VARID_MAX_KERNEL];
	u32 pos; /* bytes of out in use */
	union {
		u8 out[OUT_MAX];
		struct {
			struct perf_event_header header;
			struct varid_record record;
		};
	};
};

static int varid_read(const struct varid_scratch *s, void *to, u32 size, u64 from)
{
	const struct varid_tunnel_memory *tunnel = s->tunnel;

	if (tunnel && from >= tunnel->start && from - tunnel->start <= tunnel->size - size) {
		memcpy(to, tunnel->memory + (from - tunnel->start), size);
		return 0;
	}
	return varid_copy(to, from, size);
}

static const u8 *varid_window(struct varid_walk *walk, u64 addr, u32 size)
{
	struct varid_scratch *s = container_of(walk, struct varid_scratch, walk);

	return varid_read(s, s->window, size, addr) ? NULL : s->window;
}

static bool put(struct varid_scratch *s, const void *what, u32 size)
{
	if (s->pos > OUT_MAX - 8 - size)
		return false;
	memcpy(s->out + s->pos, what, size);
	s->pos += size;
	return true;
}

static bool put_word(struct varid_scratch *s, u64 word)
{
	return put(s, &word, sizeof(word));
}

/* Reads a pointer of the process without its tag. It has 32 bits if narrow. Only between varid_words_begin and varid_words_end. */
#define GET_POINTER(pointer, narrow, at, end, label)							\
	do {												\
		if (narrow) {										\
			u32 get_32;									\
													\
			varid_get_word(get_32, at, end, label);						\
			(pointer) = get_32;								\
		} else {										\
			unsigned long get_long;								\
													\
			varid_get_word(get_long, at, end, label);					\
			(pointer) = VARID_ADDRESS((u64)get_long);					\
		}											\
	} while (0)

/* The equivalent of varid_walk_fragment. */
#define GET_FRAGMENT(walk, layout, narrow, at, end, label)						\
	do {												\
		const u64 get_start = (at);								\
		u64 get_quick, get_top, get_link;							\
													\
		GET_POINTER(get_quick, narrow, get_start + VARID_OFFSET((layout)->fragment_quick), end, label); \
		GET_POINTER(get_top, narrow, get_start + VARID_OFFSET((layout)->fragment_top), end, label); \
		GET_POINTER(get_link, narrow, get_start + VARID_OFFSET((layout)->fragment_link), end, label); \
		varid_walk_into(walk, get_quick, get_top, get_link);					\
	} while (0)

/* Returns true if the fast path supports the layout. Otherwise, each frame is copied. */
static bool has_words(const struct varid_layout *layout)
{
	return layout->rules[0].kind == VARID_RULE_LIST && layout->quick_rule == VARID_NO_RULE &&
	       (layout->word == 4 || layout->word == sizeof(long));
}

/*
 * Starts the walk like varid_walk_start, but reads only the necessary words. Returns false on any
 * problem, which varid_walk_start then reports.
 */
static bool start_by_words(struct varid_scratch *s, u64 slot, u32 expected, const struct varid_leaf *leaf)
{
	const struct varid_layout *layout = s->layout;
	const bool narrow = layout->word == 4;
	unsigned long end;
	u64 base;
	u32 tid;

	if (!has_words(layout))
		return false;
	end = varid_words_begin(slot);
	if (!end)
		return false;
	GET_POINTER(base, narrow, slot, end, absent);
	varid_get_word(tid, base + layout->thread_tid, end, absent);
	GET_FRAGMENT(&s->walk, layout, narrow, base + layout->thread_fragment, end, absent);
	varid_words_end();
	if (tid != expected)
		return false;
	s->walk.base = base;
	s->walk.inner = VARID_INNER_NONE;
	s->walk.reg_pc = VARID_ADDRESS(leaf->pc);
	return varid_walk_begun(&s->walk, leaf->sp, leaf->frame) == VARID_WALK_FRAME;

absent:
	varid_words_end();
	return false;
}

/*
 * Takes consecutive quick and plain frames, including those of outer fragments. Problems are left to
 * varid_walk_step.
 */
static void take_frames_by_words(struct varid_scratch *s, u32 limit)
{
	const struct varid_layout *layout = s->layout;
	const u32 link_at = VARID_OFFSET(layout->rules[0].frame_link);
	const u32 pc_at = VARID_OFFSET(layout->rules[0].frame_pc);
	struct varid_packed_frame *out = (struct varid_packed_frame *)(s->out + s->pos);
	const bool narrow = layout->word == 4;
	struct varid_walk walk = s->walk;
	u64 link, reach = s->reach;
	u32 room = (OUT_MAX - 8 - s->pos) / sizeof(*out), taken = 0;
	unsigned long end;

	if (!has_words(layout) || !(walk.quick || walk.next) || s->record.frames >= limit)
		return;
	room = min(room, limit - s->record.frames);
	end = varid_words_begin(walk.quick ? walk.quick : walk.next);
	if (!end)
		return;
	while (taken < room) {
		if (walk.quick) {
			struct varid_frame frame = { .addr = walk.quick, .flags = VARID_FRAME_QUICK };

			GET_POINTER(frame.method, narrow, walk.quick, end, over);
			taken += varid_pack_frame(&frame, out + taken);
			walk.quick = 0;
		} else {
			GET_POINTER(link, narrow, walk.next + link_at, end, over);
			if (!walk.reg_pc)
				GET_POINTER(walk.reg_pc, narrow, walk.next + pc_at, end, over);
			if (!varid_plain_frame(walk.next, link, walk.reg_pc, out + taken))
				break;
			if (!reach)
				reach = walk.next;
			taken++;
			walk.next = link;
			walk.reg_pc = 0;
		}
		if (walk.next)
			continue;
		if (!walk.fragment)
			break;
		GET_FRAGMENT(&walk, layout, narrow, walk.fragment, end, over);
		if (!walk.next && !walk.quick)
			break;
	}
over:
	varid_words_end();
	s->walk = walk;
	s->reach = reach;
	s->record.frames += taken;
	s->pos += taken * sizeof(*out);
}

static bool take_frame(struct varid_scratch *s, u32 limit)
{
	struct varid_record *record = &s->record;
	struct varid_packed_frame packed[2];
	struct varid_frame frame;
	int entries;
	const int result = varid_walk_step(&s->walk, s->layout, VARID_ALL_RULES, &frame);

	if (result == VARID_WALK_TORN)
		record->flags |= VARID_TORN;
	if (result == VARID_WALK_AGAIN)
		return true;
	if (result == VARID_WALK_DROP) {
		s->pos -= record->frames * sizeof(packed[0]);
		record->frames = 0;
		record->flags &= ~(VARID_INNER | VARID_IN_BODY);
		s->reach = 0;
		return true;
	}
	if (result != VARID_WALK_FRAME)
		return false;
	entries = varid_pack_frame(&frame, packed);
	if (record->frames >= limit || !put(s, packed, entries * sizeof(packed[0]))) {
		record->flags |= VARID_FRAMES_TRUNCATED;
		return false;
	}
	record->frames += entries;
	if (!s->reach && !(frame.flags & VARID_FRAME_QUICK))
		s->reach = frame.addr;
	return true;
}

static int start(struct varid_scratch *s, u64 slot, u32 tid, const struct varid_leaf *leaf)
{
	u64 base = 0;

	if (start_by_words(s, slot, tid, leaf))
		return VARID_WALK_FRAME;
	if (varid_read(s, &base, s->layout->word == 4 ? 4 : 8, slot) || !base)
		return VARID_WALK_END;
	return varid_walk_start(&s->walk, s->layout, VARID_ALL_RULES, base, tid, leaf);
}

/* Fills in the leaf from the registers. Returns true if the ip is in the body of a rule. */
static bool take_leaf(const struct varid_record *record, const struct varid_target *target, struct varid_leaf *leaf)
{
	const struct varid_rule *rule = &target->layout.rules[target->layout.quick_rule & (VARID_MAX_RULES - 1)];
	u32 i;

	leaf->quick_frame = record->regs[rule->reg_frame & (VARID_REGS - 1)];
	leaf->quick_pc = record->regs[rule->reg_pc & (VARID_REGS - 1)];
	leaf->ip = record->regs[VARID_PC(record->flags)];
	leaf->sp = record->regs[VARID_SP(record->flags)];
	leaf->link = record->regs[VARID_LR(record->flags)];
	leaf->frame = leaf->pc = 0;
	leaf->rule = VARID_NO_RULE;
	for (i = 0; i < VARID_MAX_RULES; i++) {
		if (leaf->ip < target->body[i].start || leaf->ip >= target->body[i].end)
			continue;
		rule = &target->layout.rules[i];
		leaf->rule = i;
		leaf->frame = record->regs[rule->reg_frame & (VARID_REGS - 1)] + rule->frame_bias;
		leaf->pc = record->regs[rule->reg_pc & (VARID_REGS - 1)];
		return true;
	}
	return false;
}

static void take_frames(struct varid_scratch *s, const struct varid_target *target)
{
	const u32 limit = target->flags & VARID_TARGET_NO_STACK ? 1 : VARID_MAX_FRAMES;
	struct varid_record *record = &s->record;
	struct varid_leaf leaf = { 0 };
	u32 tid = record->tid, steps = 0;
	u64 slot;
	int result;

	if (!(target->flags & VARID_TARGET_READY)) {
		record->flags |= VARID_NOT_READY;
		return;
	}
	s->layout = &target->layout;
	if (take_leaf(record, target, &leaf))
		record->flags |= VARID_IN_BODY;
	if (!VARID_NAMESPACES_ARE_TOLD || target->flags & VARID_TARGET_NAMESPACED)
		tid = task_pid_vnr(current);
	slot = VARID_ADDRESS(varid_thread_pointer(record->flags) + s->layout->tls_offset);
	result = start(s, slot, tid, &leaf);
	if (result != VARID_WALK_FRAME) {
		record->flags |= result == VARID_WALK_TORN ? VARID_TORN : VARID_NO_BASE;
		return;
	}
	if (varid_is_tried(&s->walk))
		record->flags |= VARID_INNER;
	do {
		take_frames_by_words(s, limit);
		/* Frames that belong to the VM itself may link to each other in a cycle. */
		if (steps++ > 2 * VARID_MAX_FRAMES) {
			record->flags |= VARID_FRAMES_TRUNCATED;
			return;
		}
	} while (take_frame(s, limit));
}

#endif
