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

#include "dim.h"
#include "vm.h"

#define COMPARE 63   /* called by qsort, for methods that sort */
#define MAX_DEPTH 60 /* of calls below a round's first */

uint64_t method_insns[METHODS];

/* Code of methods and code that calls methods are apart, so that each is one range. */
#define IN_METHODS __attribute__((section("shadow_methods"), noinline, noclone, no_icf))
#define IN_CALLS __attribute__((section("shadow_calls"), noinline, noclone))
#define INLINE static inline __attribute__((always_inline))

extern const char __start_shadow_methods[], __stop_shadow_methods[];
extern const char __start_shadow_calls[], __stop_shadow_calls[];

static method *const table[METHODS];

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
	uint64_t x = seed;
	unsigned i;

	for (i = 0; i < 160 + 4 * n * n; i++)
		x = mix(x + n);
	return x;
}

/* Work inside the C library: the ip leaves the methods. */
INLINE uint64_t library_work(struct context *context, unsigned n, uint64_t seed, unsigned depth)
{
	uint64_t numbers[32];
	unsigned i;

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
		unsigned long before = dim_enter(method_insns[number]);                       \
		uint64_t x = seed;                                                            \
                                                                                              \
		if (number != COMPARE && !hold(context, number, seed, depth)) {               \
			x = work(number, seed);                                               \
			x = library_work(context, number, x, depth);                          \
			throw(context, number, x);                                            \
			x = calls(context, number, x, depth);                                 \
		}                                                                             \
		dim_leave_to(before);                                                         \
		return x;                                                                     \
	}

/* Catches what is thrown below it; the frames in between are gone from both stacks. */
#define CATCHING_METHOD(n)                                                                    \
	IN_METHODS uint64_t m##n(struct context *context, uint64_t seed, unsigned depth);     \
	IN_METHODS uint64_t m##n(struct context *context, uint64_t seed, unsigned depth)      \
	{                                                                                     \
		const unsigned number = 1##n - 100;                                           \
		const unsigned long before = dim_enter(method_insns[number]);                 \
		void *const outer = context->handler;                                         \
		volatile uint64_t x = seed;                                                   \
		jmp_buf handler;                                                              \
                                                                                              \
		if (!hold(context, number, seed, depth)) {                                    \
			if (!setjmp(handler)) {                                               \
				context->handler = &handler;                                  \
				x = calls(context, number, work(number, seed), depth);        \
			} else {                                                              \
				dim_leave_to(before + 1);                                     \
				x = work(number, x ^ context->result);                        \
			}                                                                     \
			context->handler = outer;                                             \
		}                                                                             \
		dim_leave_to(before);                                                         \
		return x;                                                                     \
	}

METHOD(00) CATCHING_METHOD(01) METHOD(02) METHOD(03) METHOD(04) METHOD(05) METHOD(06) METHOD(07)
METHOD(08) METHOD(09) METHOD(10) METHOD(11) METHOD(12) METHOD(13) METHOD(14) METHOD(15)
METHOD(16) CATCHING_METHOD(17) METHOD(18) METHOD(19) METHOD(20) METHOD(21) METHOD(22) METHOD(23)
METHOD(24) METHOD(25) METHOD(26) METHOD(27) METHOD(28) METHOD(29) METHOD(30) METHOD(31)
METHOD(32) CATCHING_METHOD(33) METHOD(34) METHOD(35) METHOD(36) METHOD(37) METHOD(38) METHOD(39)
METHOD(40) METHOD(41) METHOD(42) METHOD(43) METHOD(44) METHOD(45) METHOD(46) METHOD(47)
METHOD(48) CATCHING_METHOD(49) METHOD(50) METHOD(51) METHOD(52) METHOD(53) METHOD(54) METHOD(55)
METHOD(56) METHOD(57) METHOD(58) METHOD(59) METHOD(60) METHOD(61) METHOD(62) METHOD(63)

static method *const table[METHODS] = {
	m00, m01, m02, m03, m04, m05, m06, m07, m08, m09, m10, m11, m12, m13, m14, m15,
	m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31,
	m32, m33, m34, m35, m36, m37, m38, m39, m40, m41, m42, m43, m44, m45, m46, m47,
	m48, m49, m50, m51, m52, m53, m54, m55, m56, m57, m58, m59, m60, m61, m62, m63,
};

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
