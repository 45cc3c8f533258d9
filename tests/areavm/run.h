/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What does areavm run? */
#ifndef AREAVM_RUN_H
#define AREAVM_RUN_H

#include <stdint.h>

/* Runs methods from a seed; the same seeds give the same result, on any machine. */
uint32_t run_methods(uint32_t seed);

/* Where the methods' native code is. */
void body_code(uint64_t *start, uint64_t *end);

#endif
