/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The known builds of ART, and the layout of each one's frames.
 *
 * The key is the build-id: a layout is valid for one build only. The agent (inside the VM) and varid
 * (outside) use the same table.
 */
#ifndef VARID_ART_BUILDS_H
#define VARID_ART_BUILDS_H

#include "varid_tunnel.h"

#define VARID_BUILD_ID_SIZE 20

/* A range of code, in bytes from the load base, and its kind (enum varid_range_kind). */
struct varid_build_range {
	varid_u32 start;
	varid_u32 end;
	varid_u32 kind;
};

/*
 * Where the innermost frame of a thread's list has an invalid link, in bytes from the load base: PushShadowFrame has published the frame
 * and not yet linked it to the one before, which there always is.
 */
struct varid_build_push {
	varid_u32 start; /* behind the store of the innermost frame */
	varid_u32 end;   /* behind that of its link */
};

struct varid_build {
	varid_u8 build_id[VARID_BUILD_ID_SIZE];
	const char *name;
	/*
	 * Complete except for tls_offset, which the dynamic linker assigns. Addresses are relative to the
	 * load base.
	 */
	struct varid_layout layout;
	/* Address of the GOT entry that contains tls_offset, relative to the load base. */
	varid_u64 tls_word;
	/* __dex_debug_descriptor and __dex_debug_register_code_ptr, relative to the load base. */
	varid_u64 dex_debug;
	varid_u64 dex_debug_hook;
	varid_u32 runtime_instrumentation; /* offset in art::Runtime; 0: unknown */
	varid_u32 text_start; /* executable code, relative to the load base */
	varid_u32 text_end;
	const struct varid_build_range *ranges; /* sorted, disjoint */
	varid_u32 range_count;
	varid_u32 push_count; /* 0: each frame is linked before it is the innermost one */
	const struct varid_build_push *pushes; /* sorted, disjoint */
};

/* The maximum number of ranges that varid_build_ranges returns for any build. */
#define VARID_BUILD_RANGES 256

/* Returns a build by index, or null after the last one. */
const struct varid_build *varid_build_at(varid_u32 index);

/* Returns the build with this id, or null. */
const struct varid_build *varid_build_find(const varid_u8 *build_id, varid_u32 size);

/* Returns the build's layout in a process that has loaded it at base. */
void varid_build_layout(const struct varid_build *build, varid_u64 base, varid_s64 tls_offset, struct varid_layout *layout);

/*
 * Returns the build's code in a process that has loaded it at base: the ranges of the table and, between
 * them, the rest of the VM's code. They are sorted and disjoint. The return value is their number.
 */
varid_u32 varid_build_ranges(const struct varid_build *build, varid_u64 base,
			     struct varid_range *out, varid_u32 capacity);

#endif
