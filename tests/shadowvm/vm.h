/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What do the parts of shadowvm share?
 */
#ifndef SHADOWVM_H
#define SHADOWVM_H

#include <stddef.h>
#include <stdint.h>

#define METHODS 64

/* What one thread of the VM is doing. */
struct context {
	uint64_t calls;  /* still to be made in this round */
	uint64_t result; /* of everything so far */
	void *handler;   /* jmp_buf of the innermost method that catches, or null */
	void (*held)(void); /* called by the innermost method of a held chain */
};

typedef uint64_t method(struct context *context, uint64_t seed, unsigned depth);

/* Address of each method's first instruction in the mapped dex file. */
extern uint64_t method_insns[METHODS];

/* Runs methods from a seed; the same seed gives the same result, on any machine. */
uint64_t run_round(struct context *context, uint64_t seed);

/* Calls m00 .. m(depth-1), each by the one before, and held() in the last. */
void run_held(struct context *context, unsigned depth);

/* Where the methods' native code is. */
void methods_code(uint64_t *start, uint64_t *end);
/* Where the code that calls methods is. */
void calls_code(uint64_t *start, uint64_t *end);

/* Finds methods m00 .. m63 of the class in a dex file's bytes; 0 if all are there. */
int dex_methods(const uint8_t *dex, size_t size, const char *descriptor, uint64_t insns[METHODS]);

#endif
