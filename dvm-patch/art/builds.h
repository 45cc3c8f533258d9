/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which ART builds are known, and how the frames of each are laid out.
 *
 * Keyed by build-id: a layout belongs to one build and to no other. The agent (inside
 * the VM) and varid (outside it) use this one table.
 */
#ifndef VARID_ART_BUILDS_H
#define VARID_ART_BUILDS_H

#include "varid_tunnel.h"

#define VARID_BUILD_ID_SIZE 20

/* Where code is, in bytes from the load base; of a kind (enum varid_range_kind). */
struct varid_build_range {
	varid_u32 start;
	varid_u32 end;
	varid_u32 kind;
};

/*
 * Where a thread's list of frames ends too early, in bytes from the load base: PushShadowFrame has made a frame the innermost one and not
 * yet linked it to the one before, which there always is.
 */
struct varid_build_push {
	varid_u32 start; /* behind the store of the innermost frame */
	varid_u32 end;   /* behind that of its link */
};

struct varid_build {
	varid_u8 build_id[VARID_BUILD_ID_SIZE];
	const char *name;
	/* Complete but for tls_offset, which the dynamic linker decides. Addresses are from the load base. */
	struct varid_layout layout;
	/* The word, from the load base, that holds tls_offset: a GOT entry. */
	varid_u64 tls_word;
	/* __dex_debug_descriptor and __dex_debug_register_code_ptr, from the load base. */
	varid_u64 dex_debug;
	varid_u64 dex_debug_hook;
	varid_u32 runtime_instrumentation; /* in art::Runtime; 0: not known */
	varid_u32 text_start; /* executable code, from the load base */
	varid_u32 text_end;
	const struct varid_build_range *ranges; /* sorted, disjoint */
	varid_u32 range_count;
	varid_u32 push_count; /* 0: each frame is linked before it is the innermost one */
	const struct varid_build_push *pushes; /* sorted, disjoint */
};

/* At most as many ranges as varid_build_ranges fills in for any build. */
#define VARID_BUILD_RANGES 256

/* The builds, one by one; null behind the last. */
const struct varid_build *varid_build_at(varid_u32 index);

/* The build with this id, or null. */
const struct varid_build *varid_build_find(const varid_u8 *build_id, varid_u32 size);

/* The build's layout in a process that loaded it at base. */
void varid_build_layout(const struct varid_build *build, varid_u64 base, varid_s64 tls_offset, struct varid_layout *layout);

/*
 * The build's code in a process that loaded it at base: the ranges of the table and,
 * between them, the rest of the VM's code; sorted, disjoint. Returns how many.
 */
varid_u32 varid_build_ranges(const struct varid_build *build, varid_u64 base,
			     struct varid_range *out, varid_u32 capacity);

#endif
