/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What do the methods of shadowvm do?
 *
 * Every method is a native function of its own, m00 .. m63, so that the native symbol
 * of an interrupted instruction, or of its callers by frame pointer, tells which method
 * ran: truth that needs no profiler. Work differs from method to method; some call into
 * the C library, some are called back from it, some throw, some catch.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "dim.h"
#include "vm.h"

#define COMPARE 63   /* called by qsort, for methods that sort */
#define MAX_DEPTH 60 /* of calls below a round's first */

int remapping;
unsigned work_steps;

/* Code of methods and code that calls methods are apart, so that each is one range. */
#define IN_METHODS __attribute__((section("shadow_methods"), noinline, noclone, no_icf))
#define IN_CALLS __attribute__((section("shadow_calls"), noinline, noclone))
#define INLINE static inline __attribute__((always_inline))

extern const char __start_shadow_methods[], __stop_shadow_methods[];
extern const char __start_shadow_calls[], __stop_shadow_calls[];

static method *const table[METHODS];

/* The same VM as it was before it had dim: what dim costs is beside this. */
#ifdef WITHOUT_DIM
#define HOOKED 0
#else
#define HOOKED 1
#endif

/* splitmix64 */
INLINE uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

IN_CALLS static uint64_t call(struct context *context, unsigned n, uint64_t seed, unsigned depth)
{
	if (!context->calls || depth > MAX_DEPTH)
		return seed;
	context->calls--;
	return table[n % METHODS](context, seed, depth);
}

/* qsort has no argument for its callback. */
static __thread struct context *sorting;
static __thread unsigned sorting_depth;

IN_CALLS static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (int)table[COMPARE](sorting, (*x > *y) - (*x < *y) + 1u, sorting_depth) - 1;
}

INLINE uint64_t work(unsigned n, uint64_t seed)
{
	unsigned steps = work_steps ? work_steps : 160 + 4 * n * n;
	uint64_t x = seed;
	unsigned i;

	for (i = 0; i < steps; i++)
		x = mix(x + n);
	return x;
}

/* Work inside the C library: the ip leaves the methods. */
INLINE uint64_t library_work(struct context *context, unsigned n, uint64_t seed, unsigned depth)
{
	uint64_t numbers[32];
	unsigned i;

	if (work_steps)
		return seed;
	if (n % 8 == 3) {
		char from[512], to[512];

		memset(from, (int)seed & 0xff, sizeof(from));
		for (i = 0; i < 16; i++) {
			memcpy(to, from, sizeof(to));
			__asm__ volatile("" ::"r"(to), "r"(from) : "memory");
			seed += (unsigned char)to[seed % sizeof(to)];
		}
	}
	if (n % 16 == 6) {
		for (i = 0; i < 32; i++)
			numbers[i] = mix(seed + i);
		sorting = context;
		sorting_depth = depth + 1;
		qsort(numbers, 32, sizeof(numbers[0]), compare);
		seed ^= numbers[seed % 32];
	}
	return seed;
}

INLINE uint64_t calls(struct context *context, unsigned n, uint64_t seed, unsigned depth)
{
	uint64_t x = seed;
	unsigned children = seed % 4;
	unsigned i;

	if (n % 8 == 0 && seed % 3 != 0)
		x += call(context, n, mix(x), depth + 1); /* deep: calls itself */
	for (i = 0; i < children; i++) {
		x = mix(x + i);
		x += call(context, (unsigned)(x >> 32), x, depth + 1);
	}
	return x;
}

/* Whether this call goes on with a chain that ends in held(). */
INLINE int hold(struct context *context, unsigned n, uint64_t seed, unsigned depth)
{
	if (!context->held)
		return 0;
	if (seed)
		table[n + 1](context, seed - 1, depth + 1);
	else
		context->held();
	return 1;
}

/* Returns the depth of the shadow stack before. */
INLINE unsigned long enter(struct context *context, unsigned n)
{
	uint64_t address = method_insns[n];
	unsigned long before = HOOKED ? dim_enter(address) : 0;

	if (HOOKED && remapping)
		dim_remap_record(before, address);
	context->counts[n].invokes++;
	context->frames[context->depth++ % FRAMES] = (uint8_t)n;
	if (HOOKED && dim_calls_on())
		dim_call(DIM_INVOKE, address, 0);
	return before;
}

INLINE void leave(struct context *context, unsigned n, unsigned long before)
{
	if (HOOKED && dim_calls_on())
		dim_call(DIM_RETURN, method_insns[n], 0);
	context->depth--;
	context->counts[n].returns++;
	if (HOOKED)
		dim_leave_to(before);
}

/* An exception has left what the method called, down to this depth. */
INLINE void unwind(struct context *context, unsigned depth, unsigned long before)
{
	while (context->depth > depth) {
		unsigned n = context->frames[--context->depth % FRAMES];

		context->counts[n].unwinds++;
		if (HOOKED && dim_calls_on())
			dim_call(DIM_UNWIND, method_insns[n], 0);
	}
	if (HOOKED)
		dim_leave_to(before + 1);
}

/* Throws to the innermost method that catches, from as deep as it is. */
INLINE void throw(struct context *context, unsigned n, uint64_t seed)
{
	if (n % 16 == 5 && context->handler && seed % 2) {
		context->result = mix(context->result ^ n);
		longjmp(*(jmp_buf *)context->handler, 1);
	}
}

#define METHOD(n)                                                                             \
	IN_METHODS uint64_t m##n(struct context *context, uint64_t seed, unsigned depth);     \
	IN_METHODS uint64_t m##n(struct context *context, uint64_t seed, unsigned depth)      \
	{                                                                                     \
		const unsigned number = 1##n - 100;                                           \
		unsigned long before = enter(context, number);                                \
		uint64_t x = seed;                                                            \
                                                                                              \
		if (number != COMPARE && !hold(context, number, seed, depth)) {               \
			x = work(number, seed);                                               \
			x = library_work(context, number, x, depth);                          \
			throw(context, number, x);                                            \
			x = calls(context, number, x, depth);                                 \
		}                                                                             \
		leave(context, number, before);                                               \
		return x;                                                                     \
	}

/* Catches what is thrown below it; the frames in between are gone from both stacks. */
#define CATCHING_METHOD(n)                                                                    \
	IN_METHODS uint64_t m##n(struct context *context, uint64_t seed, unsigned depth);     \
	IN_METHODS uint64_t m##n(struct context *context, uint64_t seed, unsigned depth)      \
	{                                                                                     \
		const unsigned number = 1##n - 100;                                           \
		const unsigned long before = enter(context, number);                          \
		const unsigned depth_here = context->depth;                                   \
		void *const outer = context->handler;                                         \
		volatile uint64_t x = seed;                                                   \
		jmp_buf handler;                                                              \
                                                                                              \
		if (!hold(context, number, seed, depth)) {                                    \
			if (!setjmp(handler)) {                                               \
				context->handler = &handler;                                  \
				x = calls(context, number, work(number, seed), depth);        \
			} else {                                                              \
				unwind(context, depth_here, before);                          \
				x = work(number, x ^ context->result);                        \
			}                                                                     \
			context->handler = outer;                                             \
		}                                                                             \
		leave(context, number, before);                                               \
		return x;                                                                     \
	}

ALL_METHODS(METHOD, CATCHING_METHOD)

static method *const table[METHODS] = METHOD_TABLE;

IN_CALLS uint64_t run_round(struct context *context, uint64_t seed)
{
	uint64_t x = 0;

	context->calls = 10000;
	while (context->calls) {
		seed = mix(seed);
		x = mix(x ^ call(context, (unsigned)(seed >> 40), seed, 0));
	}
	context->result = mix(context->result ^ x);
	return context->result;
}

IN_CALLS void run_held(struct context *context, unsigned depth)
{
	if (depth && depth <= COMPARE)
		table[0](context, depth - 1, 0);
}

void methods_code(uint64_t *start, uint64_t *end)
{
	*start = (uintptr_t)__start_shadow_methods;
	*end = (uintptr_t)__stop_shadow_methods;
}

void calls_code(uint64_t *start, uint64_t *end)
{
	*start = (uintptr_t)__start_shadow_calls;
	*end = (uintptr_t)__stop_shadow_calls;
}
