/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* SHADOW: one record for each call, which the VM writes to its own memory. */
#ifndef VARID_RULES_SHADOW_H
#define VARID_RULES_SHADOW_H

#include "../walk.h"

/* VARID_WALK_END: the records do not belong to thread tid. */
static inline __attribute__((always_inline)) int
varid_start_shadow(struct varid_walk *walk, varid_u64 base, varid_u32 tid)
{
	const struct varid_shadow *shadow;
	const varid_u8 *window;

	window = VARID_WINDOW_AT(walk, base, sizeof(*shadow));
	if (!window)
		return VARID_WALK_TORN;
	shadow = (const struct varid_shadow *)window;
	if (shadow->tid != tid)
		return VARID_WALK_END;
	walk->next = shadow->depth;
	return walk->next > shadow->capacity ? VARID_WALK_TORN : VARID_WALK_FRAME;
}

static inline __attribute__((always_inline)) int
varid_step_shadow(struct varid_walk *walk, struct varid_frame *out)
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

#endif
