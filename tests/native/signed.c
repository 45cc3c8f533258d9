/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whose stack is known at every instruction, although its return addresses may be signed?
 *
 * Each level works and calls the next, and nobody else does: which level an instruction is in tells all of its callers.
 * Prints how many of the return addresses that it found on its stack carry a signature.
 */
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* { caller's frame, return address } */
struct frame {
	const struct frame *caller;
	uint64_t return_address;
};

static unsigned signed_addresses, return_addresses;
static volatile uint64_t sink;

static inline __attribute__((always_inline)) void work(uint64_t rounds)
{
	uint64_t x = rounds;

	while (rounds--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink += x;
}

#define LEVEL(name, next, declare_space, rounds)                   \
	__attribute__((noinline, noclone)) static int name(int n)  \
	{                                                          \
		declare_space;                                     \
		int result;                                        \
								   \
		space[0] = 1;                                      \
		work(rounds);                                      \
		result = next(n + 1);                              \
		work(rounds);                                      \
		return result + space[0];                          \
	}
/* A frame of a size that its unwind information says, and one of a size that only a register knows. */
#define FIXED(bytes) volatile char space[bytes]
#define DYNAMIC(bytes) volatile char *space = alloca(bytes + n % 2 * 16)

/* Calls nobody: it needs no frame, and its return address stays in the link register. */
__attribute__((noinline, noclone)) static int level6(int n)
{
	work(3000);
	return n;
}

__attribute__((noinline, noclone)) static int level5(int n)
{
	int result;
	const struct frame *frame = __builtin_frame_address(0);

	for (; frame && frame->caller; frame = frame->caller) {
		signed_addresses += frame->return_address >> 48 != 0;
		return_addresses++;
	}
	work(1000);
	result = level6(n + 1);
	work(1000);
	return result;
}

LEVEL(level4, level5, DYNAMIC(16), 2000)
LEVEL(level3, level4, FIXED(4000), 1000)
LEVEL(level2, level3, FIXED(160), 500)
LEVEL(level1, level2, DYNAMIC(16), 250)
LEVEL(level0, level1, FIXED(48), 125)

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	int result = 0;

	for (int round = 0; round < rounds; round++)
		result += level0(round);
	printf("%u of %u return addresses are signed, result %d\n", signed_addresses, return_addresses, result);
	return 0;
}
