/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cost of a call that dim records: a function with a record, and one without.
 */
#include "dim.h"

#define FUNCTION __attribute__((noinline)) unsigned long

FUNCTION plain_call(unsigned long x);
FUNCTION shadow_call(unsigned long x);
void shadow_enter(unsigned long method);
void shadow_leave(void);
void shadow_unwind(unsigned long depth);

FUNCTION plain_call(unsigned long x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

FUNCTION shadow_call(unsigned long x)
{
	unsigned long depth = dim_enter(0x10000);

	__asm__ volatile("" : "+r"(x));
	dim_leave_to(depth);
	return x + 1;
}

/* Separate functions, whose instructions are printed and counted. */
void shadow_enter(unsigned long method)
{
	dim_enter(method);
}

void shadow_leave(void)
{
	dim_leave();
}

void shadow_unwind(unsigned long depth)
{
	dim_leave_to(depth);
}

#ifdef BENCH_MAIN
#include <stdio.h>
#include <time.h>

#define CALLS 100000000ul

static double nanoseconds(unsigned long call(unsigned long))
{
	struct timespec from, to;
	unsigned long i, x = 0;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (i = 0; i < CALLS; i++)
		x = call(x);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / (double)CALLS;
}

int main(void)
{
	const struct varid_layout layout = { .rule_count = 1, .rules = { { .kind = VARID_RULE_SHADOW } } };
	double plain = nanoseconds(plain_call);
	double off = nanoseconds(shadow_call), on;

	if (!dim_init(VARID_VM_OTHER, &layout, 0, 0, 0))
		return 1;
	dim_thread_start(DIM_DEFAULT_DEPTH);
	if (!dim_shadow)
		return 1;
	on = nanoseconds(shadow_call);
	printf("ns per call: %.2f plain, %.2f with dim off, %.2f recorded\n", plain, off, on);
	dim_thread_exit();
	return 0;
}
#endif
