/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What does a VM call so that each call of a method can be counted?
 *
 * The tactic method-invoke: every invoke, return and unwind is an event. Off (the default) it
 * costs a load and a branch where the VM asks dim_calls_on() itself, and nothing where it turns
 * its own hooks off. varid turns it on through the control page (varid_tunnel.h), and it goes
 * off when varid dies.
 */
#ifndef VARID_DIM_CALLS_H
#define VARID_DIM_CALLS_H

#include "dim.h"

enum dim_event { DIM_INVOKE = 0, DIM_RETURN = 1, DIM_UNWIND = 2 };

/* What a VM knows of a method; zero, null or VARID_NO_INDEX where it does not. */
struct dim_method {
	varid_u64 insns; /* address of its first instruction in a mapped dex file */
	varid_u64 dex;   /* where that starts */
	varid_u32 index; /* in its method_ids */
	const char *descriptor; /* of its class, Lorg/example/Balls; */
	const char *name;
};

/*
 * Called once for each method that is called, while it is. The texts must stay until the method or its dex file
 * is said to be gone. It must not call dim.
 */
typedef void dim_describe(varid_u64 method, struct dim_method *out);
/*
 * Events are wanted from now on, or no longer. 0: the VM cannot do that now; it is asked again to stop, and not to
 * begin.
 */
typedef int dim_switched(int on);

/*
 * After dim_init: the VM can count calls. tactic: that of the VM's start, as the environment's
 * VARID_TACTIC says, or null; log: where a line per event goes then (VARID_CALL_LOG), or null;
 * filters: what the names of the methods begin with that are counted then (VARID_CALL_FILTERS),
 * with semicolons between them, or null for all. If there is no room for these, nothing is counted
 * from the start on. switched may be null.
 *
 * A forked child counts for itself, from zero, when it is told to; methods keep their remapped addresses. Before
 * its first call and its second thread it is to call dim_after_fork. From Linux 4.14 on that call does it itself;
 * before, it would count in the parent's table. That events are no longer wanted the VM hears at the first
 * dim_calls_poll.
 */
DIM_HIDDEN void dim_calls_init(dim_describe *describe, dim_switched *switched, const char *tactic,
			       const char *log, const char *filters);

/* Looks at what varid wants: to be called a few times a second, from any thread; costs a system call or two. */
DIM_HIDDEN void dim_calls_poll(void);

/*
 * The VM forgets a method, or all methods of a dex file: what comes at the same pointer is
 * another one. What was counted stays.
 */
DIM_HIDDEN void dim_calls_method_gone(varid_u64 method);
DIM_HIDDEN void dim_calls_dex_gone(varid_u64 dex);

extern DIM_HIDDEN int dim_calls_wanted;

DIM_INLINE int dim_calls_on(void)
{
	return __builtin_expect(*(volatile int *)&dim_calls_wanted, 0);
}

/*
 * Something happened to a call of the method that the VM knows by this pointer. dex: where its dex file starts, for a
 * VM that may put another method at the pointer before it says that the first is gone; else 0.
 */
DIM_HIDDEN void dim_call(enum dim_event event, varid_u64 method, varid_u64 dex);

/*
 * The method's remapped address, R = i + VARID_REMAP_FIRST; 0 if there is no room for it. Found in a
 * bounded number of steps, whatever else there is.
 */
DIM_HIDDEN varid_u32 dim_remap(varid_u64 method);

#ifndef DIM_NO_SHADOW
/*
 * After dim_enter, which returned this depth: the record holds the remapped address from now on. It is never
 * without one or the other, so that no sample takes the caller for the method.
 */
DIM_INLINE void dim_remap_record(unsigned long depth, varid_u64 method)
{
	struct varid_shadow *shadow = dim_shadow;

	if (shadow && depth < shadow->capacity) {
		varid_u32 remapped = dim_remap(method);

		if (remapped)
			*(volatile varid_u64 *)&shadow->records[depth].method = remapped;
	}
}
#endif

#endif
