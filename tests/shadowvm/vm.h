/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What do the parts of shadowvm share?
 */
#ifndef SHADOWVM_H
#define SHADOWVM_H

#include <stdint.h>

#include "methods.h"

#define FRAMES 256 /* deeper than any chain of calls */

/* How often a method was called and left, as the VM itself counts. */
struct counts {
	uint64_t invokes, returns, unwinds;
};

/* What one thread of the VM is doing. */
struct context {
	struct counts counts[METHODS];
	uint8_t frames[FRAMES]; /* the methods that are being executed, outermost first */
	unsigned depth;
	uint64_t calls;  /* still to be made in this round */
	uint64_t result; /* of everything so far */
	void *handler;   /* jmp_buf of the innermost method that catches, or null */
	void (*held)(void); /* called by the innermost method of a held chain */
};

typedef uint64_t method(struct context *context, uint64_t seed, unsigned depth);

/* Calls are recorded by their remapped addresses, R = i + H0, instead of those. */
extern int remapping;

/* Each call does so many steps of work and nothing else; 0: as much as its method does. */
extern unsigned work_steps;

/* Runs methods from a seed; the same seed gives the same result, on any machine. */
uint64_t run_round(struct context *context, uint64_t seed);

/* Calls m00 .. m(depth-1), each by the one before, and held() in the last. */
void run_held(struct context *context, unsigned depth);

/* Where the methods' native code is. */
void methods_code(uint64_t *start, uint64_t *end);
/* Where the code that calls methods is. */
void calls_code(uint64_t *start, uint64_t *end);

#endif
