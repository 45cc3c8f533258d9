/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How does dim hear of ART's calls?
 */
#ifndef VARID_ART_INVOKES_H
#define VARID_ART_INVOKES_H

#include "builds.h"

/*
 * Prepares for the tactic method-invoke, on a thread that ART knows. vm: what ART hands to agents; path: libart's.
 * Where ART exports too little for it, one line on standard error says so, and nothing is counted.
 */
void varid_invokes_init(const struct varid_build *build, const struct varid_layout *layout, void *vm,
			const char *path);

/* ART ends: it is asked for nothing more. */
void varid_invokes_end(void);

/* A dex file has come, in whichever process this is. */
void varid_invokes_dex_came(void);

/* A dex file is about to go, and its methods with it. */
void varid_invokes_dex_gone(varid_u64 start);

#endif
