/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The memory that a run of the program works with, and copies of a thread's memory, of which the walk's windows are parts. */
#ifndef VARID_BPF_COPIES_H
#define VARID_BPF_COPIES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel.h"

struct varid_walk;
static __always_inline const __u8 *window_at(struct varid_walk *walk, __u64 addr, __u32 size);
static __always_inline const __u8 *alone_at(struct varid_walk *walk, __u64 addr, __u32 size);
#define VARID_WINDOW_AT(walk, addr, size) window_at(walk, addr, size)
#define VARID_ALONE_AT(walk, addr, size) alone_at(walk, addr, size)
#define VARID_OFFSET(offset) ((offset) & (VARID_WINDOW - 4))
#include "walker.h"

#define OUT_MAX 65400 // of a perf record's 65,535 bytes

// A read by the kernel costs about as much as copying 600 bytes more: what lies together is
// copied at once, and the walk's windows are parts of the copy.
#define COPY_MAX 16384     // a power of two
#define COPY_BUDGET 131072 // bytes of a sample: links that lead to and fro end with single windows
#define COPY_FIRST 256     // of the VM's thread: its tid and its innermost fragment
#define COPY_UNKNOWN 1024  // of the stack of a thread that was never walked
#define SPARSE 768         // bytes from frame to frame, from which on each is better copied alone
#define THREADS 64         // remembered by each CPU, a power of two

// What the last walk of a thread found; a wrong guess costs time only.
struct thread {
	__u64 id;
	__u64 base;
	__u64 frames_end; // 0: they lie far from each other
};

struct scratch {
	struct varid_walk walk;
	struct varid_layout layout;
	__u32 rule;       // the one whose body the ip is in
	struct varid_state state; // of the rule of quick frames; flags 0: the ip is in none
	__u32 ended;      // the walk has come to its end; not kept of basic rules
	__u64 pos;        // bytes of out in use
	__u64 reach;      // address of the innermost frame that is not a quick one
	__u64 copy_start; // address of copy's first byte
	__u64 copy_len;
	__u64 copy_end;   // a miss copies up to there
	__u64 copy_sum;   // bytes, of this sample
	__u64 seen_end;   // of the windows that were asked for
	__u64 unsaid;     // bytes of records since the reader was last woken
	__u64 ucontext_below;   // how far below the end of an alternate stack the last ucontext_t was found; 0: none was
	__u64 present;          // bytes of a slice up to the end of its last page that is in memory
	__u64 signal_stack_end; // VARID_INTERRUPTED: the first address above what an unwinder reads of the alternate stack
	__u64 slices;           // where the slices begin in out
	__u64 fp;               // the frame pointer that is followed next
	struct varid_frame_link link;
	__u64 beyond;           // where the first link of the record is
	__u64 handler_regs[VARID_REGS]; // VARID_INTERRUPTED: the record's registers while those that were interrupted take their place
	union {
		struct varid_record record;
		__u8 out[65536 + VARID_STACK_FULL]; // the second half only for the verifier
	};
	__u8 copy[COPY_MAX + VARID_SAVES_WINDOW + VARID_WORD_MAX] __attribute__((aligned(8)));
	__u8 alone[VARID_WINDOW + VARID_WORD_MAX] __attribute__((aligned(8)));
	struct thread threads[THREADS];
};

// One for each CPU, or more; not a per-CPU map, whose values are at most 32 KiB.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); // the loader says how many
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

// What a turn of a loop leaves in registers would make each turn a state of its own to the
// verifier; read again from the map, every turn looks like the first.
static __always_inline void forget_registers(void)
{
	asm volatile("" ::: "memory");
}

// The scratch that nothing else uses while this run of the program lasts.
static __always_inline struct scratch *own_scratch(void);

#ifndef VARID_CAN_BE_PREEMPTED
static __always_inline struct scratch *own_scratch(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}
#endif

static __always_inline bool copied(struct scratch *s, __u64 from, __u64 len)
{
	// The bound is for the verifier, which must see it on the very register that is passed.
	asm volatile("" : "+r"(len));
	if (len > COPY_MAX)
		len = COPY_MAX;
	asm volatile("" : "+r"(len));
	s->copy_start = from;
	s->copy_len = len;
	s->copy_sum += len;
	if (len <= COPY_MAX && !bpf_probe_read_user(s->copy, len, (const void *)from))
		return true;
	s->copy_len = 0;
	return false;
}

// Copies size bytes at addr and as much as can be had of what follows up to copy_end; in a
// shadow stack, which is walked downwards, of what precedes.
__noinline int copy_at(struct scratch *s, __u64 addr, __u32 size)
{
	__u64 from = addr, end = addr + size, page = VARID_PAGE - (addr & (VARID_PAGE - 1));

	if (!s)
		return -1;
	if (s->copy_sum >= COPY_BUDGET) {
		s->copy_end = 0;
	} else if (s->layout.rules[0].kind == VARID_RULE_SHADOW) {
		if (addr > s->walk.base)
			from = addr - s->walk.base < COPY_MAX - size ? s->walk.base : end - COPY_MAX;
		page = 0;
	} else if (s->copy_end > end) {
		end = s->copy_end;
	}
	if (copied(s, from, end - from))
		return 0;
	if (end - from == size)
		return -1;
	// Some of that is absent: the rest of the page, else nothing but what is needed.
	return (page > size && page < end - from && copied(s, addr, page)) || copied(s, addr, size) ? 0 : -1;
}

// See walk.h.
static __always_inline const __u8 *window_at(struct varid_walk *walk, __u64 addr, __u32 size)
{
	struct scratch *s = (struct scratch *)walk;
	__u64 offset = addr - s->copy_start;

	if (s->seen_end < addr + size)
		s->seen_end = addr + size;
	if (offset >= s->copy_len || size > s->copy_len - offset) {
		if (s->copy_end > addr + size || s->layout.rules[0].kind == VARID_RULE_SHADOW) {
			if (copy_at(s, addr, size))
				return NULL;
			offset = addr - s->copy_start;
		} else {
			s->copy_len = size;
			s->copy_start = addr;
			if (bpf_probe_read_user(s->copy, size, (const void *)addr)) {
				s->copy_len = 0;
				return NULL;
			}
			return s->copy;
		}
	}
	return s->copy + (offset & (COPY_MAX - 1));
}

// See walk.h.
static __always_inline const __u8 *alone_at(struct varid_walk *walk, __u64 addr, __u32 size)
{
	struct scratch *s = (struct scratch *)walk;
	const __u8 *window = s->alone;

	if (bpf_probe_read_user(s->alone, size & (VARID_WINDOW - 1), (const void *)addr))
		window = NULL;
	// The caller must look at the window itself: clang would look at the read's result again, of which a verifier before 6.8
	// does not remember that it is not 0.
	asm volatile("" : "+r"(window));
	return window;
}

#endif
