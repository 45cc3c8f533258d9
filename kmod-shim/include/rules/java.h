/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * HotSpot's frames on the native stack of x86-64: interpreted and compiled methods, stubs, and calls from the VM.
 *
 * A step takes the words of the stack by which an unwinder leaves a frame, and which code the frame is of. Which frames
 * the stack has is decided by the unwinder. So a walk that starts at a word that is no return address takes words that
 * nobody asks for, and invents no caller.
 *
 * The walk starts at the leaf's frame if that is complete, for native code at the frame that the thread's anchor has,
 * else at the first return address above the stack pointer whose frame has a caller in generated code:
 * varid_start_java, varid_scan_java while there is more, then varid_step_java until it is anything but
 * VARID_WALK_FRAME. If it has not come to a call from the VM, a word that an earlier call has left behind has led it,
 * and the scan goes on.
 */
#ifndef VARID_RULES_JAVA_H
#define VARID_RULES_JAVA_H

#include "../walk.h"

#define VARID_KNOWN_BLOBS 8   /* blobs of a walk that are remembered, a power of two */
#define VARID_MAX_HOPS 40     /* in a segment map: a blob of a megabyte has 33 */
#define VARID_FREE_SEGMENT 0xff
#define VARID_SCANNED 128     /* bytes of stack of a step of the scan */
#define VARID_MAX_SCAN 4096   /* and of all */
#define VARID_JAVA_STARTS 3   /* frames at which a walk is tried to start */
#define VARID_JAVA_LINK 16    /* bytes of a frame pointer's two words */
#define VARID_FURTHEST (1u << 20) /* bytes from an interpreter frame's frame pointer to its caller's stack pointer */
#define VARID_MAX_NATIVE (1u << 17) /* bytes from a leaf in native code to the Java frame below it: another stack is further */

/* Where a walk starts. */
enum varid_java_start {
	VARID_JAVA_FOUND = 1,    /* at java */
	VARID_JAVA_TRY = 2,      /* at java, if varid_java_leads_on after a step; else the scan goes on */
	VARID_JAVA_MORE = 0,     /* the scan goes on */
	VARID_JAVA_NOWHERE = -1,
};

/* A blob of code, and an address in it. */
struct varid_java_blob {
	varid_u64 pc; /* 0: unknown */
	varid_u64 start;
	varid_u32 size;       /* bytes */
	varid_u32 words;      /* of its frames; 0: unknown */
	varid_u32 linked;     /* a frame pointer leads to its frames, if it is known: they may be larger */
	varid_u32 complete;   /* bytes of code until a frame is made */
	varid_u32 compile_id; /* if it is a compiled method */
};

/* The next frame of a walk. */
struct varid_java {
	varid_u64 sp;
	varid_u64 pc; /* 0: there is none */
	varid_u64 fp;
	varid_u64 stack;   /* where the record's copy of the stack starts */
	varid_u64 scanned; /* the next address to scan */
	varid_u64 entry;   /* frame pointer of the last call from the VM; 0: none */
	varid_u64 thread;  /* its JavaThread, as compiled code had it; 0: unknown */
	int resumes;       /* the step was a call from the VM, and this is the Java frame that called the VM */
	struct varid_java_blob known[VARID_KNOWN_BLOBS];
};

/* Returns the index of the code heap that has an address, or VARID_CODE_HEAPS. */
static inline __attribute__((always_inline)) varid_u32 varid_code_heap(const struct varid_jvm *jvm, varid_u64 pc)
{
	varid_u32 at, found = VARID_CODE_HEAPS;

#ifdef __clang__
#pragma unroll
#endif
	for (at = 0; at < VARID_CODE_HEAPS; at++)
		if (pc >= jvm->heaps[at].start && pc < jvm->heaps[at].end)
			found = at;
	return found;
}

static inline __attribute__((always_inline)) int varid_is_interpreter(const struct varid_jvm *jvm, varid_u64 pc)
{
	return pc >= jvm->interpreter_start && pc < jvm->interpreter_end;
}

/* Returns the start of the block that has an address of a heap, or 0: through the segment map, as the VM finds it. */
static inline __attribute__((always_inline)) varid_u64
varid_java_block(struct varid_walk *walk, const struct varid_code_heap *heap, varid_u64 pc)
{
	varid_u64 segment = (pc - heap->start) >> (heap->log2_segment & 31);
	const varid_u8 *window;
	varid_u32 hops, hop;

	for (hops = 0; hops < VARID_MAX_HOPS; hops++) {
		window = VARID_ALONE_AT(walk, heap->segments + segment, 1);
		if (!window)
			return 0;
		hop = *window;
		if (!hop)
			return heap->start + (segment << (heap->log2_segment & 31));
		if (hop == VARID_FREE_SEGMENT || hop > segment)
			return 0;
		segment -= hop;
	}
	return 0;
}

/* Returns the first instruction of a blob, or 0. */
static inline __attribute__((always_inline)) varid_u64
varid_java_code(struct varid_walk *walk, const struct varid_jvm *jvm, const struct varid_java_blob *blob)
{
	const varid_u8 *window = VARID_ALONE_AT(walk, blob->start + jvm->blob_code, sizeof(varid_u64));

	if (!window)
		return 0;
	return jvm->has_code_offset ? blob->start + *(const varid_u32 *)window : *(const varid_u64 *)window;
}

/* Returns nonzero if the code of a blob starts with push %rbp; mov %rsp,%rbp. */
static inline __attribute__((always_inline)) int
varid_is_linked(struct varid_walk *walk, const struct varid_jvm *jvm, const struct varid_java_blob *blob)
{
	const varid_u8 *window = VARID_ALONE_AT(walk, varid_java_code(walk, jvm, blob), sizeof(varid_u32));

	return window && *(const varid_u32 *)window == 0xec8b4855u;
}

/* Reads the blob that has an address of a heap. Returns 0 if there is none. */
static inline __attribute__((always_inline)) int
varid_read_blob(struct varid_walk *walk, const struct varid_jvm *jvm, varid_u32 heap, varid_u64 pc,
		struct varid_java_blob *blob)
{
	const varid_u64 block = varid_java_block(walk, &jvm->heaps[heap & (VARID_CODE_HEAPS - 1)], pc);
	const varid_u8 *window;

	if (!block)
		return 0;
	blob->pc = pc;
	blob->start = block + jvm->block_header;
	window = VARID_ALONE_AT(walk, blob->start + jvm->blob_fields, VARID_BLOB_FIELDS);
	if (!window)
		return 0;
	blob->size = *(const varid_u32 *)(window + VARID_OFFSET(jvm->blob_size));
	blob->words = *(const varid_u32 *)(window + VARID_OFFSET(jvm->blob_frame));
	blob->complete = *(const varid_u32 *)(window + (jvm->blob_complete & (VARID_WINDOW - 2)));
	if (jvm->has_short_complete)
		blob->complete &= 0xffff;
	if (pc < blob->start || pc - blob->start >= blob->size)
		return 0;
	window = VARID_ALONE_AT(walk, blob->start + jvm->compile_id, sizeof(varid_u32));
	if (!window)
		return 0;
	blob->compile_id = *(const varid_u32 *)window;
	/* Negative: unknown. */
	if (blob->words >> 31)
		blob->words = 0;
	blob->linked = !blob->words ||
		       (heap == varid_code_heap(jvm, jvm->interpreter_start) && varid_is_linked(walk, jvm, blob));
	return 1;
}

/* Returns the blob that has an address of a heap, or NULL. */
static inline __attribute__((always_inline)) const struct varid_java_blob *
varid_find_blob(struct varid_walk *walk, const struct varid_jvm *jvm, struct varid_java *java, varid_u32 heap,
		varid_u64 pc)
{
	struct varid_java_blob *known = &java->known[(pc >> 2 ^ pc >> 9) & (VARID_KNOWN_BLOBS - 1)];

	if (known->pc == pc)
		return known;
	if (varid_read_blob(walk, jvm, heap, pc, known))
		return known;
	known->pc = 0;
	return 0;
}

/* Fills in which code a frame is of. */
static inline __attribute__((always_inline)) void
varid_java_code_of(const struct varid_java_blob *blob, struct varid_java_frame *out)
{
	out->code = blob->start;
	out->detail = blob->compile_id | (varid_u64)blob->size << 32;
}

/* Goes to the caller. Its stack pointer is higher: a stack grows down. */
static inline __attribute__((always_inline)) int
varid_java_caller(struct varid_java *java, varid_u64 sp, varid_u64 pc, varid_u64 fp)
{
	if (sp <= java->sp)
		return VARID_WALK_TORN;
	java->sp = sp;
	java->pc = pc;
	java->fp = fp;
	return VARID_WALK_FRAME;
}

/* Goes to a thread's last Java frame below native code, which an anchor has. Returns nonzero if there is one, above sp. */
static inline __attribute__((always_inline)) int
varid_java_anchor(struct varid_walk *walk, const struct varid_jvm *jvm, struct varid_java *java, varid_u64 anchor,
		  varid_u64 sp)
{
	const varid_u8 *window = VARID_ALONE_AT(walk, anchor, VARID_ANCHOR);

	java->pc = 0;
	if (!window)
		return 0;
	java->sp = *(const varid_u64 *)(window + VARID_OFFSET(jvm->anchor_sp));
	java->fp = *(const varid_u64 *)(window + VARID_OFFSET(jvm->anchor_fp));
	java->pc = *(const varid_u64 *)(window + VARID_OFFSET(jvm->anchor_pc));
	if (java->sp <= sp) {
		java->pc = 0;
		return 0;
	}
	if (!java->pc) {
		window = VARID_WINDOW_AT(walk, java->sp - 8, sizeof(varid_u64));
		java->pc = window ? *(const varid_u64 *)window : 0;
	}
	return varid_code_heap(jvm, java->pc) != VARID_CODE_HEAPS;
}

/* Fills in that native frames, whose stack pointers are `at` bytes from the record's stack or more, have been called by the next frame. */
static inline __attribute__((always_inline)) void
varid_java_resumes(const struct varid_java *java, varid_u64 at, struct varid_java_frame *out)
{
	out->at = at;
	out->sender = VARID_JAVA_RESUMES;
	out->caller_fp = java->fp;
	out->returns = java->pc;
	out->code = java->sp;
	out->detail = 0;
}

/* Takes the two words at `at`: the caller's frame pointer and the return address. */
static inline __attribute__((always_inline)) int
varid_java_link(struct varid_walk *walk, struct varid_java *java, varid_u64 at, struct varid_java_frame *out)
{
	const varid_u8 *window;

	if (at < java->stack || at - java->stack > ~(varid_u32)0)
		return VARID_WALK_TORN;
	window = VARID_WINDOW_AT(walk, at, VARID_JAVA_LINK);
	if (!window)
		return VARID_WALK_TORN;
	out->at = at - java->stack;
	out->caller_fp = *(const varid_u64 *)window;
	out->returns = *(const varid_u64 *)(window + 8);
	return VARID_WALK_FRAME;
}

/* An interpreter's frame: below its frame pointer are the caller's stack pointer, the method, and its bytecode pc. */
static inline __attribute__((always_inline)) int
varid_step_interpreted(struct varid_walk *walk, struct varid_java *java, struct varid_java_frame *out)
{
	const varid_u64 fp = java->fp;
	const varid_u8 *window;
	varid_u64 sender;

	if (fp < java->sp || varid_java_link(walk, java, fp, out) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	window = VARID_WINDOW_AT(walk, fp - VARID_JAVA_BCP, VARID_JAVA_BCP);
	if (!window)
		return VARID_WALK_TORN;
	sender = *(const varid_u64 *)(window + VARID_JAVA_BCP - VARID_JAVA_SENDER);
	out->code = *(const varid_u64 *)(window + VARID_JAVA_BCP - VARID_JAVA_METHOD);
	out->detail = *(const varid_u64 *)window;
	if (sender <= fp || sender - fp > VARID_FURTHEST)
		return VARID_WALK_TORN;
	out->sender = sender - fp;
	return varid_java_caller(java, sender, out->returns, out->caller_fp);
}

/* A call from the VM: the Java frame that called the VM is the thread's last one then. */
static inline __attribute__((always_inline)) int
varid_step_entry(struct varid_walk *walk, const struct varid_jvm *jvm, struct varid_java *java,
		 struct varid_java_frame *out)
{
	const varid_u64 fp = java->fp;
	const varid_u8 *window;

	if (fp < java->sp || varid_java_link(walk, java, fp, out) != VARID_WALK_FRAME)
		return VARID_WALK_TORN;
	java->entry = fp;
	java->pc = 0;
	window = VARID_WINDOW_AT(walk, fp - jvm->frame_wrapper, sizeof(varid_u64));
	if (window)
		java->resumes = varid_java_anchor(walk, jvm, java, *(const varid_u64 *)window + jvm->wrapper_anchor, fp);
	return VARID_WALK_FRAME;
}

/* Takes the next frame. VARID_WALK_END: its caller is native code, or not known. */
static inline __attribute__((always_inline)) int
varid_step_java(struct varid_walk *walk, const struct varid_jvm *jvm, struct varid_java *java,
		struct varid_java_frame *out)
{
	const varid_u64 pc = java->pc;
	const varid_u32 heap = varid_code_heap(jvm, pc);
	const struct varid_java_blob *blob;
	varid_u64 caller;
	int result;

	if (heap == VARID_CODE_HEAPS)
		return VARID_WALK_END;
	java->resumes = 0;
	out->sender = 0;
	out->code = out->detail = 0;
	if (varid_is_interpreter(jvm, pc))
		return varid_step_interpreted(walk, java, out);
	if (pc == jvm->call_returns)
		return varid_step_entry(walk, jvm, java, out);
	blob = varid_find_blob(walk, jvm, java, heap, pc);
	if (!blob)
		return VARID_WALK_TORN;
	varid_java_code_of(blob, out);
	/* The anchor of a stub's call into the VM has no frame pointer. */
	if (blob->linked && java->fp >= java->sp)
		caller = java->fp + VARID_JAVA_LINK;
	else if (blob->words)
		caller = java->sp + 8ull * blob->words;
	else
		return VARID_WALK_TORN;
	result = varid_java_link(walk, java, caller - VARID_JAVA_LINK, out);
	return result == VARID_WALK_FRAME ? varid_java_caller(java, caller, out->returns, out->caller_fp) : result;
}

/* After a step: returns nonzero if the frame has a caller in generated code, or is a call from the VM. */
static inline __attribute__((always_inline)) int varid_java_leads_on(const struct varid_jvm *jvm, const struct varid_java *java)
{
	return java->entry || varid_code_heap(jvm, java->pc) != VARID_CODE_HEAPS;
}

/* Returns nonzero if the instruction at ip is one that is executed where a compiled method's frame is left already. */
static inline __attribute__((always_inline)) int varid_is_epilogue(struct varid_walk *walk, varid_u64 ip)
{
	const varid_u8 *code = VARID_ALONE_AT(walk, ip, sizeof(varid_u32));

	if (!code)
		return 1;
	/* pop %rbp; ret, ret N; the comparison of %rsp with a word of the thread, and the jump behind it. */
	return code[0] == 0x5d || code[0] == 0xc3 || code[0] == 0xc2 || (code[0] == 0x0f && code[1] == 0x87) ||
	       (code[0] == 0x49 && code[1] == 0x3b && (code[2] == 0x67 || code[2] == 0xa7));
}

/*
 * Starts at the leaf, at the frame that has called native code, or lets the user scan the stack. The user has set
 * java->stack and java->thread. If there is something to say of the leaf, out->code is not 0: the blob that it is in, or
 * where frames resume.
 */
static inline __attribute__((always_inline)) enum varid_java_start
varid_start_java(struct varid_walk *walk, const struct varid_jvm *jvm, struct varid_java *java, varid_u64 ip,
		 varid_u64 sp, varid_u64 fp, varid_u64 thread, struct varid_java_frame *out)
{
	const varid_u32 heap = varid_code_heap(jvm, ip);
	const struct varid_java_blob *blob;
	varid_u64 code;
	varid_u32 at;

	for (at = 0; at < VARID_KNOWN_BLOBS; at++)
		java->known[at].pc = 0;
	java->sp = sp;
	java->pc = ip;
	java->fp = fp;
	java->scanned = (sp + 7) & ~7ull;
	java->entry = 0;
	java->resumes = 0;
	out->at = out->sender = 0;
	out->caller_fp = out->returns = out->code = out->detail = 0;
	if (heap == VARID_CODE_HEAPS) {
		if (java->thread && varid_java_anchor(walk, jvm, java, java->thread + jvm->thread_anchor, sp) &&
		    java->sp - sp < VARID_MAX_NATIVE) {
			varid_java_resumes(java, 0, out);
			return VARID_JAVA_FOUND;
		}
		java->sp = sp;
		java->pc = 0;
		java->fp = fp;
		return VARID_JAVA_MORE;
	}
	if (varid_is_interpreter(jvm, ip)) {
		java->thread = thread;
		return VARID_JAVA_TRY;
	}
	blob = varid_find_blob(walk, jvm, java, heap, ip);
	if (!blob)
		return VARID_JAVA_MORE;
	varid_java_code_of(blob, out);
	if (blob->linked)
		return VARID_JAVA_MORE;
	java->thread = thread;
	code = varid_java_code(walk, jvm, blob);
	if (ip < code || ip - code < blob->complete || varid_is_epilogue(walk, ip))
		return VARID_JAVA_MORE;
	return VARID_JAVA_FOUND;
}

/* Scans the next words of the stack. fp: the leaf's frame pointer register. */
static inline __attribute__((always_inline)) enum varid_java_start
varid_scan_java(struct varid_walk *walk, const struct varid_jvm *jvm, struct varid_java *java, varid_u64 sp,
		varid_u64 fp)
{
	const varid_u64 start = jvm->code_start, size = jvm->code_end - start, from = java->scanned;
	const varid_u8 *window;
	varid_u32 at, found = VARID_SCANNED;
	varid_u64 saved;

	if (from - sp > VARID_MAX_SCAN)
		return VARID_JAVA_NOWHERE;
	window = VARID_WINDOW_AT(walk, from, VARID_SCANNED);
	if (!window)
		return VARID_JAVA_NOWHERE;
#ifdef __clang__
#pragma unroll
#endif
	for (at = VARID_SCANNED; at; at -= 8)
		if (*(const varid_u64 *)(window + at - 8) - start < size)
			found = at - 8;
	if (found >= VARID_SCANNED) {
		java->scanned = from + VARID_SCANNED;
		return VARID_JAVA_MORE;
	}
	java->scanned = from + found + 8;
	java->sp = from + found + 8;
	java->pc = *(const varid_u64 *)(window + VARID_SAVES_OFFSET(found));
	/* A callee that keeps a frame pointer has pushed its caller's below the return address. */
	window = VARID_WINDOW_AT(walk, java->sp - VARID_JAVA_LINK, sizeof(varid_u64));
	saved = window ? *(const varid_u64 *)window : 0;
	java->fp = java->sp >= sp + VARID_JAVA_LINK && saved >= java->sp && saved - java->sp < VARID_FURTHEST ? saved : fp;
	return VARID_JAVA_TRY;
}

#endif
