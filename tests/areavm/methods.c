/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What do the methods of areavm do?
 *
 * As in shadowvm every method is a native function of its own, m00 .. m63, whose symbol is the
 * truth. Here who calls one makes its frame, as Dalvik's interpreter does, and while it
 * runs the two registers say which it is. Some work in the C library, one is called back from
 * it, some throw, some catch.
 */
#define AREA_REGISTERS
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "run.h"

#define COMPARE 63   /* called by qsort */
#define MAX_DEPTH 40 /* of calls below a round's first */

/* The loop's body, and what calls methods, are apart: in the second the registers are being changed. */
#define IN_BODY __attribute__((section("area_body"), noinline, noclone, no_icf))
#define IN_CALLS __attribute__((section("area_calls"), noinline, noclone))

extern const char __start_area_body[], __stop_area_body[];

struct thread {
	uint32_t calls; /* still to be made in this round */
	uint32_t result;
	unsigned depth;
	jmp_buf *handler;
	char *handler_frame;
};

static __thread struct thread thread;

typedef uint32_t function(uint32_t seed);
static function *const table[METHODS];

AREA_INLINE uint32_t mix(uint32_t x)
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ x << 5;
}

IN_CALLS static uint32_t invoke(unsigned n, uint32_t seed)
{
	if (!thread.calls || thread.depth > MAX_DEPTH)
		return seed;
	thread.calls--;
	thread.depth++;
	area_enter(n);
	seed = table[n](seed);
	area_leave();
	thread.depth--;
	return seed;
}

/* Native code calls: what the registers hold is its own, and it wants that back. */
IN_CALLS static uint32_t invoke_from_native(unsigned n, uint32_t seed)
{
	const uint16_t *const its_pc = area_pc;
	char *const its_frame = area_frame;
	char *const caller = area_self->frame;

	area_frame = caller ? area_push(caller, NULL, NULL) : NULL;
	area_pc = NULL;
	area_enter(n);
	seed = table[n](seed);
	area_self->frame = caller;
	area_frame = its_frame;
	area_pc = its_pc;
	return seed;
}

IN_CALLS static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (int)invoke_from_native(COMPARE, (*x > *y) - (*x < *y) + 1u) - 1;
}

/* Leaves all methods down to the one that catches; the thread's note goes first. */
IN_CALLS static void throw(void)
{
	area_self->frame = thread.handler_frame;
	longjmp(*thread.handler, 1);
}

AREA_INLINE uint32_t work(unsigned n, uint32_t x)
{
	unsigned i;

	for (i = 0; i < 400 + 16 * n * n; i++)
		x = mix(x + n);
	return x;
}

/* Work in the C library: the ip leaves the loop, and the frame has said where it is. */
AREA_INLINE uint32_t library(unsigned n, uint32_t x)
{
	uint32_t numbers[32];
	unsigned i;

	area_export();
	if (n % 8 == 3) {
		char from[512], to[512];

		memset(from, (int)x & 0xff, sizeof(from));
		for (i = 0; i < 16; i++) {
			memcpy(to, from, sizeof(to));
			__asm__ volatile("" ::"r"(to), "r"(from) : "memory");
			x += (unsigned char)to[x % sizeof(to)];
		}
	}
	if (n % 16 == 6) {
		for (i = 0; i < 32; i++)
			numbers[i] = x = mix(x + i);
		qsort(numbers, 32, sizeof(numbers[0]), compare);
		x ^= numbers[x % 32];
	}
	return x;
}

AREA_INLINE uint32_t calls(uint32_t x)
{
	unsigned children = x % 4;

	while (children--) {
		x = mix(x + children + 1);
		x += invoke(x >> 16 & (METHODS - 1), x | 1);
	}
	return x;
}

/* The pc moves on behind the first instruction, and comes to the last one. */
#define METHOD(n)                                                                             \
	IN_BODY static uint32_t m##n(uint32_t x)                                              \
	{                                                                                     \
		const unsigned number = 1##n - 100;                                           \
                                                                                              \
		if (number == COMPARE)                                                        \
			return x;                                                             \
		x = work(number, x);                                                          \
		area_pc += 2;                                                                 \
		x = library(number, x);                                                       \
		if (number % 16 == 5 && thread.handler && x % 2)                              \
			throw();                                                              \
		x = calls(x);                                                                 \
		area_pc += 1;                                                                 \
		return x;                                                                     \
	}

#define CATCHING_METHOD(n)                                                                    \
	IN_BODY static uint32_t m##n(uint32_t seed)                                           \
	{                                                                                     \
		const unsigned number = 1##n - 100;                                           \
		const struct thread outer = thread;                                           \
		volatile uint32_t x = seed;                                                   \
		jmp_buf handler;                                                              \
                                                                                              \
		if (!setjmp(handler)) {                                                       \
			thread.handler = &handler;                                            \
			thread.handler_frame = area_frame;                                    \
			x = calls(work(number, seed));                                        \
		} else {                                                                      \
			thread.depth = outer.depth;                                           \
			x = work(number, x + 1);                                              \
		}                                                                             \
		thread.handler = outer.handler;                                               \
		thread.handler_frame = outer.handler_frame;                                   \
		return x;                                                                     \
	}

ALL_METHODS(METHOD, CATCHING_METHOD)

static function *const table[METHODS] = METHOD_TABLE;

IN_CALLS uint32_t run_methods(uint32_t seed)
{
	thread.calls = 4000;
	while (thread.calls) {
		thread.depth = 1;
		thread.calls--;
		seed = mix(seed | 1);
		thread.result = mix(thread.result + invoke_from_native(seed >> 8 & (METHODS - 1), seed));
	}
	return thread.result;
}

void body_code(uint64_t *start, uint64_t *end)
{
	*start = (uintptr_t)__start_area_body;
	*end = (uintptr_t)__stop_area_body;
}
