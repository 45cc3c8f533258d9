/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reports ART's calls to dim.
 */
#ifndef VARID_ART_INVOKES_H
#define VARID_ART_INVOKES_H

#include "builds.h"

/*
 * Prepares the tactic method-invoke, on a thread that ART knows. vm: the pointer that ART passes to agents; path:
 * libart's. If ART does not export enough for it, one line on standard error says so, and nothing is counted.
 */
void varid_invokes_init(const struct varid_build *build, const struct varid_layout *layout, void *vm,
			const char *path);

/* ART is ending: no more of its functions are called. */
void varid_invokes_end(void);

/* A dex file was loaded, in this process or in a parent. */
void varid_invokes_dex_came(void);

/* A dex file is about to be unloaded, together with its methods. */
void varid_invokes_dex_gone(varid_u64 start);

#endif
