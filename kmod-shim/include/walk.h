/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The state of a walk, the leaf's registers, and how memory is read.
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
#define VARID_SAVES_WINDOW 128 /* and of the words that a quick frame saves of its caller */
#define VARID_WORD_MAX 8 /* a word at the window's last offset extends this far beyond it */

enum varid_walk_result {
	VARID_WALK_FRAME = 1, /* out holds a frame */
	VARID_WALK_AGAIN = 2, /* one of the VM's own frames was left: take another step */
	VARID_WALK_DROP = 3, /* discard the frames found so far, and take another step */
	VARID_WALK_END = 0,
	VARID_WALK_TORN = -1,
};

/* What leads to the next quick frame. */
enum varid_quick_kind {
	VARID_QUICK_NOTED = 0, /* a note: the frame's size depends on its method */
	VARID_QUICK_AT_SP,     /* the interpreter's registers */
	VARID_QUICK_COMPILED,
};

/* How the innermost stretch of quick frames is found if there is compiled code. */
enum varid_inner {
	VARID_INNER_NONE = 0, /* by the thread's note */
	VARID_INNER_KNOWN,    /* by the interpreter's registers */
	VARID_INNER_TRIED,    /* from a leaf in compiled code: the result may be wrong */
};

struct varid_walk {
	varid_u64 base;     /* of the thread */
	varid_u64 next;     /* LIST: the next frame; SHADOW: number of remaining records; SAVE_AREA: the next area */
	varid_u64 quick;    /* stack pointer of the quick frame that comes before next; 0: there is none */
	varid_u64 fragment; /* the next outer fragment */
	varid_u64 reg_pc;   /* pc of the first frame, from a register; 0: take it from the frame. SAVE_AREA: also of later frames, from their callees */
	varid_u64 frame;    /* value of AT_SP's reg_frame in the frame at quick; reg_pc likewise */
	varid_u64 cfa;      /* AT_SP: of the frame at quick; 0: computed from frame */
	varid_u64 returns;  /* return address of the call that the frame at quick has made */
	varid_u64 note;     /* the quick frame of the innermost fragment, according to the thread's note */
	varid_u32 kind;       /* enum varid_quick_kind */
	varid_u32 inner;      /* enum varid_inner */
	varid_u32 is_outer;   /* the innermost fragment has been left */
	varid_u32 is_generic; /* the noted frame has size native_size, whatever code its method has */
};

/* The registers of the interrupted thread. Any value may have a tag. */
struct varid_leaf {
	varid_u64 ip;
	varid_u64 sp;
	varid_u64 frame; /* reg_frame + frame_bias of the rule whose body contains the ip, else 0 */
	varid_u64 pc;    /* reg_pc of that rule, else 0 */
	varid_u32 rule;  /* index of that rule in the layout */
	varid_u32 state; /* AT_SP: VARID_STATE_* of the state that contains the ip; 0: unknown, and frame and pc are those of the body */
	varid_u64 state_reg; /* AT_SP: value of the state's register */
	varid_u64 quick_frame; /* AT_SP: value of reg_frame, wherever the ip is */
	varid_u64 quick_pc;    /* AT_SP: value of reg_pc, wherever the ip is */
	varid_u64 link;      /* quick frames: the link register, if the machine has one */
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

/* Like VARID_OFFSET, for an offset within VARID_SAVES_WINDOW. */
#define VARID_SAVES_OFFSET(offset) ((offset) & (VARID_SAVES_WINDOW - 4))

static inline __attribute__((always_inline)) varid_u64
varid_saved_word(varid_u8 word, const varid_u8 *window, varid_u32 offset)
{
	const varid_u64 mask = word == 4 ? ~(varid_u32)0 : VARID_ADDRESS(~0ull);

	return *(const varid_u64 *)(window + VARID_SAVES_OFFSET(offset)) & mask;
}

/* Packs a frame for a record. Returns the number of entries, one or two. */
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
