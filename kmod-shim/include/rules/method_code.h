/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The frame size of a compiled method, and the registers that its frame saves. They are in a header before the method's code, and in
 * the CodeInfo that the header leads to (SIZED, CODE_INFO).
 */
#ifndef VARID_RULES_METHOD_CODE_H
#define VARID_RULES_METHOD_CODE_H

#include "saves.h"

#define VARID_CODE_HEADER 8 /* bytes read before a method's code, CODE_INFO: four of them */
#define VARID_INFO_SIZE 16  /* bytes that contain the first four numbers of a CodeInfo */
#define VARID_IS_CODE_INFO 0x40000000u /* CODE_INFO: bit of the header: there is a CodeInfo */
#define VARID_STUB_SIZE 0x7fffffffu    /* instead of a size: a stub of the VM's, which has no header */
#define VARID_OTHER_FRAME 1 /* instead of a frame's size: an interpreter's frame, which the rule does not describe */
#define VARID_MAX_INLINE 11 /* a larger number in a CodeInfo is the number of bytes that contain the value, plus this */

/* The data before a method's code. */
struct varid_method_code {
	varid_u64 entry;
	varid_u32 distance; /* to the CodeInfo; 0: there is none */
	varid_u32 size;     /* bytes, or VARID_STUB_SIZE */
	varid_u64 info[2];  /* CODE_INFO: the CodeInfo's first bytes */
};

static inline __attribute__((always_inline)) int
varid_read_info(struct varid_walk *walk, struct varid_method_code *code)
{
	const varid_u8 *window = VARID_ALONE_AT(walk, code->entry - code->distance, VARID_INFO_SIZE);

	if (!window)
		return 0;
	code->info[0] = *(const varid_u64 *)window;
	code->info[1] = *(const varid_u64 *)(window + 8);
	return 1;
}

/*
 * Returns a number of a CodeInfo. bits: its first four bits, which are the number or the count of bytes that contain it. These start
 * at bit `at`, which is advanced past them.
 */
static inline __attribute__((always_inline)) varid_u32
varid_info_number(const varid_u64 *info, varid_u32 bits, varid_u32 *at)
{
	varid_u32 size;
	varid_u64 rest;

	if (bits <= VARID_MAX_INLINE)
		return bits;
	size = 8 * (bits - VARID_MAX_INLINE);
	rest = *at < 64 ? info[0] >> (*at & 63) | info[1] << 1 << (63 - (*at & 63)) : info[1] >> (*at & 63);
	*at += size;
	return (varid_u32)rest & ~(varid_u32)0 >> (32 - size);
}

/* Reads the header of the code at a method's entry. Returns 0 if it cannot be read. */
static inline __attribute__((always_inline)) int
varid_code_at(struct varid_walk *walk, const struct varid_rule *rule, varid_u64 entry, struct varid_method_code *code)
{
	const varid_u8 *window = VARID_ALONE_AT(walk, entry - VARID_CODE_HEADER, VARID_CODE_HEADER);
	varid_u32 at = 28;

	if (!window)
		return 0;
	code->entry = entry;
	code->info[0] = code->info[1] = 0;
	code->distance = *(const varid_u32 *)window;
	/* The highest bit is a flag. */
	code->size = *(const varid_u32 *)(window + 4) & 0x7fffffff;
	if (rule->kind != VARID_RULE_CODE_INFO || code->size == VARID_STUB_SIZE)
		return 1;
	code->distance = code->size & VARID_IS_CODE_INFO ? code->size & ~VARID_IS_CODE_INFO : 0;
	code->size &= ~VARID_IS_CODE_INFO;
	if (!code->distance)
		return 1;
	if (!varid_read_info(walk, code))
		return 0;
	code->size = varid_info_number(code->info, code->info[0] >> 4 & 15, &at);
	return 1;
}

/* Returns nonzero if a return address is in the code. */
static inline __attribute__((always_inline)) int varid_returns_to(const struct varid_method_code *code, varid_u64 returns)
{
	return code->size != VARID_STUB_SIZE && returns > code->entry && returns - code->entry <= code->size;
}

static inline __attribute__((always_inline)) varid_u32 varid_bits(varid_u32 mask)
{
	mask -= mask >> 1 & 0x55555555;
	mask = (mask & 0x33333333) + (mask >> 2 & 0x33333333);
	return ((mask + (mask >> 4)) & 0x0f0f0f0f) * 0x01010101u >> 24;
}

/*
 * Returns the distance below the CFA at which a frame saves a register of the mask. The highest register, which is the return address,
 * comes first.
 */
static inline __attribute__((always_inline)) varid_u32 varid_kept_below(varid_u32 mask, varid_u32 reg, varid_u32 word)
{
	mask >>= reg & 31;
	return mask & 1 ? varid_bits(mask) * word : 0;
}

/*
 * Returns the frame size of some code in bytes, and what its frames save. 0: the code does not define it. VARID_OTHER_FRAME: they are
 * an interpreter's frames. has_at_sp: a caller may need registers that they save.
 */
static inline __attribute__((always_inline)) varid_u32
varid_frame_of_code(struct varid_walk *walk, const struct varid_rule *rule, int has_at_sp, varid_u32 word,
		    struct varid_method_code *code, struct varid_saves *saves)
{
	const int has_size = rule->kind == VARID_RULE_CODE_INFO; /* the size of the code precedes that of the frame */
	varid_u32 at = has_size ? 28 : 24; /* after the four bits of each number */
	varid_u32 numbers, size, kept;

	if (code->distance <= VARID_CODE_HEADER)
		return VARID_OTHER_FRAME;
	if (!has_size && !varid_read_info(walk, code))
		return 0;
	numbers = (varid_u32)code->info[0] & 0xfffffff;
	/* The first number contains flags. */
	if ((numbers & 15) > VARID_MAX_INLINE)
		return 0;
	numbers >>= 4;
	if (has_size) {
		varid_info_number(code->info, numbers & 15, &at);
		numbers >>= 4;
	}
	/* The largest size has two bytes. */
	if ((numbers & 15) > VARID_MAX_INLINE + 2)
		return 0;
	size = varid_info_number(code->info, numbers & 15, &at) * 16;
	saves->pc = saves->frame = 0;
	saves->returns = word;
	if (!has_at_sp)
		return size;
	kept = varid_info_number(code->info, numbers >> 4 & 15, &at);
	saves->pc = varid_kept_below(kept, rule->saved_pc, word);
	saves->frame = varid_kept_below(kept, rule->saved_frame, word);
	/* No machine saves that many registers. */
	if (saves->pc > VARID_SAVES_WINDOW - 2 * VARID_WORD_MAX || saves->frame > VARID_SAVES_WINDOW - 2 * VARID_WORD_MAX)
		return 0;
	return size;
}

#endif
