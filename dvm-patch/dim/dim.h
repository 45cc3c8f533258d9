/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that a VM calls to describe itself to varid.
 *
 * dim publishes the tunnel (varid_tunnel.h) and maintains a shadow stack for VMs whose frames cannot be
 * walked. It needs no C library, waits only for another thread of the VM that is publishing, and never
 * fails the VM: on any error it stops publishing.
 */
#ifndef VARID_DIM_H
#define VARID_DIM_H

#include "varid_tunnel.h"

#define DIM_HIDDEN __attribute__((visibility("hidden")))
#define DIM_BARRIER() __asm__ volatile("" ::: "memory")
#define DIM_INLINE static inline __attribute__((always_inline))

/*
 * Publishes the tunnel. layout and ranges are copied; for VARID_RULE_SHADOW dim sets tls_offset itself.
 * folder: where to create a file if the kernel has no memfd, or null. Returns 1 if the tunnel is
 * published, else 0.
 */
DIM_HIDDEN int dim_init(varid_u32 vm, const struct varid_layout *layout,
			const struct varid_range *ranges, varid_u32 range_count, const char *folder);

/* The VM executes the dex file at start. flags: VARID_CODE_BOOT or 0. Repeated calls are ignored. */
DIM_HIDDEN void dim_dex(varid_u64 start, varid_u64 size, const char *location, varid_u32 flags);

/* The same for bytecode of a kind (enum varid_code_kind). */
DIM_HIDDEN void dim_code(varid_u32 kind, varid_u64 start, varid_u64 size, const char *location, varid_u32 flags);

/* The dex file or the image at start is about to be unmapped. */
DIM_HIDDEN void dim_dex_gone(varid_u64 start);

/* The VM's compiler places its traces here. Repeated calls are ignored. */
DIM_HIDDEN void dim_traces(varid_u64 start, varid_u64 end);

/*
 * The bytecode at pc has been compiled. Its code starts here, and ends where the next one's starts. If
 * there is no space for all traces, none is listed until all are discarded.
 */
DIM_HIDDEN void dim_trace(varid_u64 start, varid_u64 pc);

/* All traces were discarded. */
DIM_HIDDEN void dim_traces_gone(void);

/*
 * Lists the calling thread, whose tls_offset leads to base, for readers that cannot read its thread
 * pointer. Repeated calls are ignored. A forked child has no base until it calls this. For
 * VARID_RULE_SHADOW dim does it itself.
 */
DIM_HIDDEN void dim_thread_base(varid_u64 base);

/* The thread with this base ends, or never existed. Call it on any thread. */
DIM_HIDDEN void dim_thread_base_gone(varid_u64 base);

/*
 * Gives a forked child its own tunnel. Call it as early as possible and before its second thread
 * (pthread_atfork). Every event of dim calls it itself when it runs in another process, except for
 * calls (calls.h). Not for vfork.
 */
DIM_HIDDEN void dim_after_fork(void);

/* The VM ends and the process continues: removes the tunnel and turns dim off. */
DIM_HIDDEN void dim_shutdown(void);

/* The address that tls_offset is relative to. */
DIM_INLINE unsigned long dim_thread_pointer(void)
{
	unsigned long tp;

#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(tp));
#elif defined(__i386__)
	__asm__("movl %%gs:0, %0" : "=r"(tp));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
#else
	__asm__("mrc p15, 0, %0, c13, c0, 3" : "=r"(tp));
#endif
	return tp;
}

#ifndef DIM_NO_SHADOW

#define DIM_DEFAULT_DEPTH 8192

/* The calling thread's shadow stack. Null if dim is off or the thread is not the VM's. */
#define DIM_TLS __attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread
extern DIM_TLS struct varid_shadow *dim_shadow;

/* Gives the calling thread a shadow stack of this many records. */
DIM_HIDDEN void dim_thread_start(varid_u32 records);
DIM_HIDDEN void dim_thread_exit(void);

DIM_INLINE varid_u64 dim_stack_pointer(void)
{
	unsigned long sp;

#if defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
#elif defined(__i386__)
	__asm__ volatile("movl %%esp, %0" : "=r"(sp));
#else
	__asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
	return sp;
}

/* One store of sixteen bytes: an interrupt sees the complete record or nothing. */
DIM_INLINE void dim_store_record(struct varid_shadow_record *record, varid_u64 method, varid_u64 sp)
{
#if defined(__SSE2__)
	typedef varid_u64 pair __attribute__((vector_size(16), may_alias));

	*(pair *)(void *)record = (pair){ method, sp };
#elif defined(__aarch64__)
	__asm__ volatile("stp %1, %2, %0" : "=Q"(*record) : "r"(method), "r"(sp));
#elif defined(__arm__)
	register varid_u32 r0 __asm__("r0") = (varid_u32)method;
	register varid_u32 r1 __asm__("r1") = 0;
	register varid_u32 r2 __asm__("r2") = (varid_u32)sp;
	register varid_u32 r3 __asm__("r3") = 0;

	__asm__ volatile("stm %0, {%1, %2, %3, %4}" ::"r"(record), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
#else
	record->method = method;
	record->sp = sp;
#endif
}

DIM_INLINE void dim_store_depth(struct varid_shadow *shadow, unsigned long depth)
{
	typedef unsigned long word __attribute__((may_alias));

	DIM_BARRIER();
	*(word *)(void *)&shadow->depth = depth; /* the upper half stays zero where a word is 4 bytes */
	DIM_BARRIER();
}

/*
 * A call of the method whose first instruction is at this address (in a mapped dex file). Returns the
 * depth before it, for dim_leave_to.
 */
DIM_INLINE unsigned long dim_enter(varid_u64 method)
{
	struct varid_shadow *shadow = dim_shadow;
	unsigned long depth;

	if (!shadow)
		return 0;
	depth = (unsigned long)shadow->depth;
	if (depth < shadow->capacity)
		dim_store_record(&shadow->records[depth], method, dim_stack_pointer());
	dim_store_depth(shadow, depth + 1);
	return depth;
}

/* The innermost call returns. */
DIM_INLINE void dim_leave(void)
{
	struct varid_shadow *shadow = dim_shadow;

	/* A thread that was registered during its calls leaves more than it has entered. */
	if (shadow && shadow->depth)
		dim_store_depth(shadow, (unsigned long)shadow->depth - 1);
}

/* Returns to a depth: an exception unwinds, or a call returns that knows its depth. */
DIM_INLINE void dim_leave_to(unsigned long depth)
{
	struct varid_shadow *shadow = dim_shadow;

	if (shadow)
		dim_store_depth(shadow, depth);
}

#endif /* DIM_NO_SHADOW */
#endif
