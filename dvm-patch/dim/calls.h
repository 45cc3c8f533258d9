/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that a VM calls so that dim can count the calls of methods.
 *
 * The tactic method-invoke: every invoke, return and unwind is an event. When it is off (the default), it costs a
 * load and a branch if the VM tests dim_calls_on() itself, and nothing if the VM disables its own hooks. varid turns
 * it on through the control page (varid_tunnel.h). It goes off when varid dies.
 */
#ifndef VARID_DIM_CALLS_H
#define VARID_DIM_CALLS_H

#include "dim.h"

enum dim_event { DIM_INVOKE = 0, DIM_RETURN = 1, DIM_UNWIND = 2 };

/* A VM's data of a method. Unknown fields are zero, null or VARID_NO_INDEX. */
struct dim_method {
	varid_u64 insns; /* address of its first instruction in a mapped dex file */
	varid_u64 dex;   /* start of that dex file */
	varid_u32 index; /* in its method_ids */
	const char *descriptor; /* of its class, Lorg/example/Balls; */
	const char *name;
};

/*
 * Called once for each called method, during its first call. The texts must stay valid until the removal of the
 * method or its dex file is reported. It must not call dim.
 */
typedef void dim_describe(varid_u64 method, struct dim_method *out);
/*
 * Starts or stops the VM's events. Returns 0 if the VM cannot do that now: stopping is then tried again, starting is
 * not.
 */
typedef int dim_switched(int on);

/*
 * Call after dim_init, if the VM can count calls. tactic: the tactic at the VM's start, from the environment's
 * VARID_TACTIC, or null. log: the path of the event log at the start (VARID_CALL_LOG), or null. filters: prefixes of
 * the methods that are counted at the start (VARID_CALL_FILTERS), separated by semicolons, or null for all. If there
 * is no space for these, nothing is counted at the start. switched may be null.
 *
 * A forked child starts with counts of zero, and counts only if it is ordered to. Methods keep their remapped
 * addresses. The child must call dim_after_fork before its first call of a method and before its second thread. From
 * Linux 4.14 on, the first call does this itself; on earlier kernels it would count in the parent's table. The VM
 * learns at the first dim_calls_poll that events are no longer needed.
 */
DIM_HIDDEN void dim_calls_init(dim_describe *describe, dim_switched *switched, const char *tactic,
			       const char *log, const char *filters);

/* Reads varid's orders. Call it a few times a second, from any thread. It costs one or two system calls. */
DIM_HIDDEN void dim_calls_poll(void);

/*
 * The VM removes a method, or all methods of a dex file: another method may reuse the pointer. The counts stay.
 */
DIM_HIDDEN void dim_calls_method_gone(varid_u64 method);
DIM_HIDDEN void dim_calls_dex_gone(varid_u64 dex);

extern DIM_HIDDEN int dim_calls_wanted;

DIM_INLINE int dim_calls_on(void)
{
	return __builtin_expect(*(volatile int *)&dim_calls_wanted, 0);
}

/*
 * Counts an event of the method that the VM identifies by this pointer. dex: the start of its dex file, for a VM that
 * may reuse the pointer before it reports the removal of the first method; else 0.
 */
DIM_HIDDEN void dim_call(enum dim_event event, varid_u64 method, varid_u64 dex);

/*
 * Returns the method's remapped address, R = i + VARID_REMAP_FIRST, or 0 if there is no space for it. The number of
 * steps is bounded.
 */
DIM_HIDDEN varid_u32 dim_remap(varid_u64 method);

#ifndef DIM_NO_SHADOW
/*
 * Call after dim_enter, which returned this depth: stores the remapped address in the record. The record always
 * contains one of both addresses, so that no sample takes the caller for the method.
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
