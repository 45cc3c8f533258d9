/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How does areavm keep frames as Dalvik does? On a stack of their own, an area below each,
 * the innermost frame and the bytecode's pc in registers of the machine while a method runs.
 */
#ifndef AREAVM_AREAS_H
#define AREAVM_AREAS_H

#include "dim.h"
#include "methods.h"

struct area_method;

struct area {
	char *caller;
	const uint16_t *caller_pc; /* null: native code called */
	const struct area_method *method; /* null: a break */
	const uint16_t *exported_pc;
	const uint16_t *unused;
};

struct area_thread {
	int status;
	int tid;
	char *frame; /* the innermost; null: none */
	char *end;   /* of the stack */
};

/* On the thread itself, around all that it runs. */
void area_thread_start(void);
void area_thread_exit(void);
/* Fills in all but the machine. */
void area_layout(struct varid_layout *layout, uintptr_t dex);

const struct area_method *area_method(unsigned n);
extern __thread struct area_thread *area_self __attribute__((tls_model("initial-exec")));

#ifdef AREA_REGISTERS
/*
 * Kept by all that a file of methods calls; its functions that others call must hand back what
 * they found there.
 */
#if defined(__x86_64__)
register const uint16_t *area_pc __asm__("r12");
register char *area_frame __asm__("r13");
#elif defined(__i386__)
register const uint16_t *area_pc __asm__("esi");
register char *area_frame __asm__("edi");
#elif defined(__aarch64__)
register const uint16_t *area_pc __asm__("x20");
register char *area_frame __asm__("x21");
#else
register const uint16_t *area_pc __asm__("r4");
register char *area_frame __asm__("r5");
#endif

#define AREA_INLINE static inline __attribute__((always_inline))

AREA_INLINE struct area *area_of(char *frame)
{
	return (struct area *)(frame - sizeof(struct area));
}

/* Nothing of a new area is written but what a VM has to: the rest is what was there before. */
AREA_INLINE char *area_push(char *inner, const uint16_t *caller_pc, const struct area_method *method)
{
	char *frame = (inner ? (char *)area_of(inner) : area_self->end) - 4 * sizeof(void *);
	struct area *area = area_of(frame);

	area->caller = inner;
	area->caller_pc = caller_pc;
	area->method = method;
	return frame;
}

/* As an invoke does: the thread's note first, then the registers. */
AREA_INLINE void area_enter(unsigned n)
{
	char *frame = area_push(area_frame, area_pc, area_method(n));

	__asm__ volatile("" ::: "memory"); /* the area is whole when it is noted */
	area_self->frame = frame;
	area_frame = frame;
	area_pc = (const uint16_t *)(uintptr_t)method_insns[n];
}

AREA_INLINE void area_leave(void)
{
	const struct area *area = area_of(area_frame);

	area_self->frame = area->caller;
	area_frame = area->caller;
	area_pc = area->caller_pc;
}

/* Tells the VM where the innermost frame is, before native code runs. */
AREA_INLINE void area_export(void)
{
	area_of(area_frame)->exported_pc = area_pc;
}
#endif

#endif
