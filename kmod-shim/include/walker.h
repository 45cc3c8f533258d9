/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The walker: finds the managed frames of a thread from its base, one frame per step.
 *
 * It is compiled into the BPF program, the kernel module and a user-space library. The user defines how memory is read (walk.h) and owns the
 * loop: varid_walk_start, then varid_walk_step until it returns anything but VARID_WALK_FRAME. varid_pack_frame packs a frame for a record.
 * Most frames are plain: for speed, call varid_plain_frame first. The walker allocates nothing and has no loops. Every read may fail, and a
 * value that was read is used only for further bounded reads.
 *
 * A layout defines which rule each stretch of the stack follows (varid_tunnel.h). HotSpot has no layout: rules/java.h is a walk of its own.
 * Each rule is a header. `rules` is a constant with
 * VARID_RULE_BIT of each kind of rule that a layout may have here. Other kinds are not compiled in, so a program for one kind is no longer
 * than that kind needs.
 */
#ifndef VARID_WALKER_H
#define VARID_WALKER_H

#include "rules/java.h"
#include "rules/list.h"
#include "rules/quick.h"
#include "rules/save_area.h"
#include "rules/shadow.h"

/*
 * base: the value that tls_offset leads to. tid: the thread's id in its process's pid namespace, or 0 if the base is known to be this
 * thread's. Returns VARID_WALK_END if it is not a thread of the VM.
 */
static inline __attribute__((always_inline)) int
varid_walk_start(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules, varid_u64 base,
		 varid_u32 tid, const struct varid_leaf *leaf)
{
	const varid_u8 *window;

	base = VARID_ADDRESS(base);
	walk->base = base;
	walk->next = walk->fragment = 0;
	walk->inner = VARID_INNER_NONE;
	walk->is_outer = walk->is_generic = 0;
	varid_end_stretch(walk);
	walk->reg_pc = VARID_ADDRESS(leaf->pc);
	if (VARID_MAY_HAVE(rules, VARID_RULE_SHADOW) && layout->rules[0].kind == VARID_RULE_SHADOW)
		return varid_start_shadow(walk, base, tid);
	if (tid) {
		window = VARID_WINDOW_AT(walk, base + layout->thread_tid, sizeof(varid_u32));
		if (!window)
			return VARID_WALK_TORN;
		if (*(const varid_u32 *)window != tid)
			return VARID_WALK_END;
	}
	if (VARID_MAY_HAVE(rules, VARID_RULE_SAVE_AREA) && layout->rules[0].kind == VARID_RULE_SAVE_AREA)
		return varid_start_areas(walk, layout, base, leaf);
	if (varid_walk_fragment(walk, layout, rules, base + layout->thread_fragment) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	return varid_start_quick(walk, layout, rules, leaf);
}

static inline __attribute__((always_inline)) int
varid_walk_step(struct varid_walk *walk, const struct varid_layout *layout, const varid_u32 rules,
		struct varid_frame *out)
{
	if (VARID_MAY_HAVE(rules, VARID_RULE_SHADOW) && layout->rules[0].kind == VARID_RULE_SHADOW)
		return varid_step_shadow(walk, out);
	if (VARID_MAY_HAVE(rules, VARID_RULE_SAVE_AREA) && layout->rules[0].kind == VARID_RULE_SAVE_AREA)
		return varid_step_area(walk, layout, out);
	if (!walk->next && !walk->quick) {
		if (!walk->fragment)
			return VARID_WALK_END;
		if (varid_walk_fragment(walk, layout, rules, walk->fragment) != VARID_WALK_FRAME)
			return VARID_WALK_TORN;
		walk->is_outer = 1;
	}
	if (walk->quick)
		return varid_step_quick(walk, layout, rules, out);
	return varid_step_list(walk, layout, out);
}

/* Returns nonzero if the first frames are those of a leaf in compiled code, which may be wrong. */
static inline __attribute__((always_inline)) int varid_is_tried(const struct varid_walk *walk)
{
	return walk->inner == VARID_INNER_TRIED && walk->quick;
}

#endif
