/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What a walk keeps from frame to frame, what the leaf's registers say, and how memory is read.
 *
 * The user of the walker (walker.h) defines, before including it,
 *
 *   VARID_WINDOW_AT(walk, addr, size)   size (at most VARID_SAVES_WINDOW) bytes of the process: where
 *                                       they can be read until the next call, or NULL
 *   VARID_ALONE_AT(walk, addr, size)    the same for at most VARID_WINDOW bytes that lie far from all others
 *   VARID_OFFSET(offset)                make an offset provably smaller than VARID_WINDOW, and
 *                                       a multiple of 4
 */
#ifndef VARID_WALK_H
#define VARID_WALK_H

#include "varid_record.h"

#define VARID_WINDOW 64   /* bytes of a frame or fragment that are read at once */
#define VARID_SAVES_WINDOW 128 /* and of what a quick frame keeps of its caller */
#define VARID_WORD_MAX 8 /* bytes after the window that a word at its last offset reaches */

enum varid_walk_result {
	VARID_WALK_FRAME = 1, /* out holds a frame */
	VARID_WALK_AGAIN = 2, /* the VM's own frame was left: take another step */
	VARID_WALK_DROP = 3, /* discard the frames found so far, and take another step */
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
