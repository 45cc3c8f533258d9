/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What does stackvm's bytecode call in C? */
#include <string.h>

#include "vm.h"

/* Bytes of a buffer are copied again and again, by the C library. */
static uint64_t copy(struct thread *thread, uint64_t seed, uint64_t times)
{
	char from[2048], to[2048];

	(void)thread;
	memset(from, (int)seed & 0xff, sizeof(from));
	while (times--) {
		memcpy(to, from, sizeof(to));
		__asm__ volatile("" ::"r"(to), "r"(from) : "memory");
		seed += (unsigned char)to[seed % sizeof(to)];
	}
	return seed;
}

static uint64_t length(struct thread *thread, uint64_t seed, uint64_t times)
{
	char text[4096];

	(void)thread;
	memset(text, 'x', sizeof(text));
	text[2048 + seed % 2047] = 0;
	while (times--) {
		__asm__ volatile("" ::"r"(text) : "memory");
		seed += strlen(text);
	}
	return seed;
}

/* Calls back: the method's frames lie below this one's. */
static uint64_t visit(struct thread *thread, uint64_t seed, uint64_t depth)
{
	uint64_t result = sv_invoke(thread, methods[seed % LOOPS], seed, depth);

	__asm__ volatile("" ::: "memory");
	return result + 1;
}

void *native_function(const char *name)
{
	static const struct {
		const char *name;
		uint64_t (*function)(struct thread *, uint64_t, uint64_t);
	} all[] = {
		{ "stack.Native.copy", copy },
		{ "stack.Native.visit", visit },
		{ "stack.Native.length", length },
	};
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(name, all[i].name))
			return (void *)all[i].function;
	return 0;
}
