/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The working memory of a run of the program, and the copies of a thread's memory that contain the walk's windows. */
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

// A read has a fixed cost of about 600 copied bytes. So adjacent data is copied at once, and the walk's windows are parts of the
// copy.
#define COPY_MAX 16384     // a power of two
#define COPY_BUDGET 131072 // bytes per sample. Beyond this, for example for links to and fro, single windows are read
#define COPY_FIRST 256     // of the VM's thread: contains its tid and its innermost fragment
#define COPY_UNKNOWN 1024  // of the stack of a thread that has not been walked before
#define SPARSE 768         // distance of frames, in bytes, from which on each is copied separately
#define THREADS 64         // threads remembered by each CPU, a power of two

// The result of the last walk of a thread. A wrong guess only costs time.
struct thread {
	__u64 id;
	__u64 base;
	__u64 frames_end; // 0: the frames are far apart
};

struct scratch {
	struct varid_walk walk;
	struct varid_layout layout;
	__u32 rule;       // index of the rule whose body contains the ip
	struct varid_state state; // of the rule of quick frames; flags 0: the ip is in no state
	__u32 ended;      // the walk has ended; not maintained for basic rules
	__u64 pos;        // bytes used in out
	__u64 reach;      // address of the innermost frame that is not a quick one
	__u64 copy_start; // address of copy's first byte
	__u64 copy_len;
	__u64 copy_end;   // end of the copy after a miss
	__u64 copy_sum;   // bytes copied in this sample
	__u64 seen_end;   // end of the requested windows
	__u64 unsaid;     // bytes of records since the last wakeup of the reader
	__u64 ucontext_below;   // distance of the last found ucontext_t from the end of the alternate stack; 0: none was found
	__u64 present;          // bytes of a slice up to the end of its last page in memory
	__u64 signal_stack_end; // VARID_INTERRUPTED: end of the part of the alternate stack that an unwinder reads
	__u64 slices;           // offset of the slices in out
	__u64 fp;               // the next frame pointer to follow
	__u64 kept_link;        // a link that the record has although it is in a slice; 0: none
	struct varid_frame_link link;
	__u64 beyond;           // address of the record's first link
	struct varid_jvm jvm;           // of the sampled process
	struct varid_java java;
	__u64 handler_regs[VARID_REGS]; // VARID_INTERRUPTED: the record's registers while the interrupted ones replace them
	union {
		struct varid_record record;
		__u8 out[65536 + VARID_STACK_FULL]; // the second half only satisfies the verifier
	};
	__u8 copy[COPY_MAX + VARID_SAVES_WINDOW + VARID_WORD_MAX] __attribute__((aligned(8)));
	__u8 alone[VARID_WINDOW + VARID_WORD_MAX] __attribute__((aligned(8)));
	struct thread threads[THREADS];
};

// At least one for each CPU. Not a per-CPU map, because the values of these are limited to 32 KiB.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); // the loader sets the number
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

// Makes the compiler read values from the map again in each iteration of a loop. Values kept in registers would make each
// iteration a different state for the verifier.
static __always_inline void forget_registers(void)
{
	asm volatile("" ::: "memory");
}

// Returns the scratch that is exclusive to this run of the program.
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
	// The verifier must see the bound on the register that is passed.
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

// Copies size bytes at addr, and as much as possible of what follows up to copy_end. A shadow stack is walked downwards, so
// there it copies what precedes.
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
	// Some of it is absent: copies the rest of the page, or else only the required bytes.
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
	// The caller must test the window itself. Otherwise clang tests the result of the read again, which a verifier before
	// 6.8 does not know to be nonzero.
	asm volatile("" : "+r"(window));
	return window;
}

#endif
