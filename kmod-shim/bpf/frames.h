/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* How does the program get a thread's managed frames? walker.h over copies of the thread's memory. */
#ifndef VARID_BPF_FRAMES_H
#define VARID_BPF_FRAMES_H

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

#define MAX_FRAMES_UNROLLED 96 // without bpf_loop: the verifier follows every turn
#define OUT_MAX 65400 // of a perf record's 65,535 bytes

// A read by the kernel costs about as much as copying 600 bytes more: what lies together is
// copied at once, and the walk's windows are parts of the copy.
#define COPY_MAX 16384     // a power of two
#define COPY_BUDGET 131072 // bytes of a sample: links that lead to and fro end with single windows
#define COPY_FIRST 256     // of the VM's thread: its tid and its innermost fragment
#define COPY_UNKNOWN 1024  // of the stack of a thread that was never walked
#define SPARSE 768         // bytes from frame to frame, from which on each is better copied alone
#define THREADS 64         // remembered by each CPU, a power of two
#define PLAIN_AT_ONCE 8    // frames
#define SAVED_AT_ONCE 16   // of an AT_SP rule, whose steps are shorter
#define OWN_FRAMES 3       // of the VM that may lie above the innermost method, where that alone is wanted
#define STATE_SLOTS 16     // builds of VMs with an AT_SP rule that are profiled at once

// The rules that every kernel's program walks. A process whose layout has others gets a program of its own, which is
// loaded when there is such a process: today's kinds cost what they cost without it.
#define BASIC_RULES                                                                    \
	(VARID_RULE_BIT(VARID_RULE_LIST) | VARID_RULE_BIT(VARID_RULE_SHADOW) |         \
	 VARID_RULE_BIT(VARID_RULE_SAVE_AREA))
#define BASIC_RULE_SIZE 24 // bytes of a rule that those read
#define BASIC_LAYOUT_SIZE 32 // and of a layout

_Static_assert(offsetof(struct varid_rule, cfa_word) <= BASIC_RULE_SIZE, "a basic rule's fields");
_Static_assert(offsetof(struct varid_layout, method_class) <= BASIC_LAYOUT_SIZE, "how basic rules are linked");

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

// See walker.h.
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

// See walker.h.
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

// One step of the walk: 0 to go on.
static __always_inline int step(struct scratch *s, __u32 limit, const __u32 rules)
{
	struct varid_frame frame;
	__u64 pos;
	int result, entries;

	if (!s)
		return 1;
	pos = s->pos;
	result = varid_walk_step(&s->walk, &s->layout, rules, &frame);
	if (result == VARID_WALK_TORN)
		s->record.flags |= VARID_TORN;
	if (rules != BASIC_RULES) {
		if (result == VARID_WALK_AGAIN)
			return 0;
		if (result == VARID_WALK_DROP) {
			s->record.frames = 0;
			s->pos = sizeof(struct varid_record);
			s->record.flags &= ~(VARID_INNER | VARID_IN_BODY);
			s->reach = 0;
			return 0;
		}
		s->ended = result != VARID_WALK_FRAME;
	}
	if (result != VARID_WALK_FRAME)
		return 1;
	if (s->record.frames >= limit || pos > OUT_MAX - 2 * sizeof(struct varid_packed_frame)) {
		s->record.flags |= VARID_FRAMES_TRUNCATED;
		return 1;
	}
	entries = varid_pack_frame(&frame, (struct varid_packed_frame *)(s->out + pos));
	s->pos = pos + entries * sizeof(struct varid_packed_frame);
	s->record.frames += entries;
	if (!s->reach && !(frame.flags & VARID_FRAME_QUICK))
		s->reach = frame.addr;
	return 0;
}

__noinline int walk_step(struct scratch *s, __u32 limit)
{
	return step(s, limit, BASIC_RULES);
}

__noinline int walk_step_any(struct scratch *s, __u32 limit)
{
	return step(s, limit, VARID_ALL_RULES);
}

// As many steps as there are plain frames, up to PLAIN_AT_ONCE; true if there may be more. alone: each is
// copied for itself, else they are taken from the copy.
static __always_inline bool plain_steps(struct scratch *s, __u32 limit, const bool alone)
{
	__u64 at = s->walk.next, start = s->copy_start, whole = s->copy_len, reg_pc = s->walk.reg_pc;
	// What is written to out cannot change these.
	const __u8 word = s->layout.word;
	const __u16 link_at = s->layout.rules[0].frame_link, pc_at = s->layout.rules[0].frame_pc;
	__u64 pos = s->pos, next, pc, taken = 0;
	struct varid_packed_frame *out;
	const __u8 *window;

	if (!at || s->walk.quick || s->layout.rules[0].kind != VARID_RULE_LIST ||
	    s->record.frames + PLAIN_AT_ONCE > limit || pos > OUT_MAX - PLAIN_AT_ONCE * sizeof(*out))
		return false;
	whole = whole < VARID_WINDOW ? 0 : whole - (VARID_WINDOW - 1);
	out = (struct varid_packed_frame *)(s->out + pos);
#pragma unroll
	for (int i = 0; i < PLAIN_AT_ONCE; i++) {
		__u64 offset = at - start;

		if (alone) {
			if (bpf_probe_read_user(s->alone, VARID_WINDOW, (const void *)at))
				break;
		} else if (offset >= whole) {
			break;
		}
		window = alone ? s->alone : s->copy + (offset & (COPY_MAX - 1));
		next = varid_word(word, window, link_at);
		pc = !i && reg_pc ? reg_pc : varid_word(word, window, pc_at);
		if (!varid_plain_frame(at, next, pc, &out[i]))
			break;
		if (!i && !s->reach)
			s->reach = at;
		at = next;
		taken++;
		if (!at)
			break;
	}
	s->walk.next = at;
	if (taken)
		s->walk.reg_pc = 0;
	s->record.frames += taken;
	s->pos = pos + taken * sizeof(*out);
	return taken == PLAIN_AT_ONCE;
}

// A word of what a frame keeps of its caller; the bits above all addresses.
#define SAVED(window, offset) (*(const __u64 *)((window) + VARID_SAVES_OFFSET(offset)))
#define TAGS (~VARID_ADDRESS(~0ull))

// The same for complete frames of an AT_SP rule whose callers are others, from the copy: what varid_walk_step would find. It leaves
// to that what is rare: 32-bit words, addresses with tags. A function of its own: the verifier follows it once.
__noinline int saved_steps(struct scratch *s, __u32 limit)
{
	const struct varid_rule *rule;
	struct varid_packed_frame *out;
	__u64 sp, frame, pc, start, whole, code_start, code_size, pos, to_word, to_saves;
	__u32 taken = 0, below, saved_pc, saved_frame, saved_return;

	if (!s || s->layout.quick_rule == VARID_NO_RULE)
		return 0;
	rule = &s->layout.rules[s->layout.quick_rule & (VARID_MAX_RULES - 1)];
	sp = s->walk.quick;
	frame = s->walk.frame;
	pc = s->walk.reg_pc;
	pos = s->pos;
	whole = s->copy_len;
	if (!frame || s->walk.cfa || s->layout.word != 8 || rule->kind != VARID_RULE_AT_SP ||
	    rule->cfa_word == VARID_NO_WORD || whole < VARID_SAVES_WINDOW ||
	    s->record.frames + SAVED_AT_ONCE > limit || pos > OUT_MAX - SAVED_AT_ONCE * sizeof(*out))
		return 0;
	whole -= VARID_SAVES_WINDOW - 1;
	below = varid_saved_below(rule);
	saved_pc = below - rule->saved_pc;
	saved_frame = below - rule->saved_frame;
	saved_return = below - rule->saved_return;
	// From the register that leads to the CFA to the place of the word in the copy, and from that word to the place of the saves.
	start = s->copy_start;
	to_word = rule->cfa_word - start;
	to_saves = rule->cfa_bias - below - start;
	code_start = rule->code_start;
	code_size = rule->code_end - code_start;
	// The verifier must see the bound on the very register that is added.
	asm volatile("" : "+r"(pos));
	out = (struct varid_packed_frame *)(s->out + (pos & 0xffff));
	asm volatile("" : "+r"(out));
#pragma unroll
	for (int i = 0; i < SAVED_AT_ONCE; i++) {
		__u64 offset = frame + to_word, cfa, returns, caller_frame, caller_pc;
		const __u8 *window;

		if (offset >= whole)
			break;
		offset = *(const __u64 *)(s->copy + (offset & (COPY_MAX - 1))) + to_saves;
		if (offset >= whole)
			break;
		cfa = offset + start + below;
		window = s->copy + (offset & (COPY_MAX - 1));
		returns = SAVED(window, saved_return);
		caller_frame = SAVED(window, saved_frame);
		caller_pc = SAVED(window, saved_pc);
		// The return address lies behind a call.
		if (cfa <= sp || !SAVED(window, below) || returns - code_start - 1 >= code_size || !caller_frame ||
		    !caller_pc || (caller_frame | caller_pc) & TAGS)
			break;
		out[i].addr = sp;
		out[i].what = pc;
		sp = cfa;
		frame = caller_frame;
		pc = caller_pc;
		taken++;
	}
	if (!taken)
		return 0;
	if (!s->reach)
		s->reach = s->walk.quick;
	s->walk.quick = sp;
	s->walk.frame = frame;
	s->walk.reg_pc = pc;
	if (s->seen_end < sp + sizeof(__u64))
		s->seen_end = sp + sizeof(__u64);
	s->record.frames += taken;
	s->pos = pos + taken * sizeof(*out);
	return taken == SAVED_AT_ONCE;
}

static __always_inline long turn(const __u32 rules)
{
	long over;
	struct scratch *s = own_scratch();

	if (!s)
		return 1;
	if (rules != BASIC_RULES && s->walk.kind == VARID_QUICK_AT_SP && s->copy_end) {
		if (saved_steps(s, VARID_MAX_FRAMES))
			return 0;
	} else if (s->copy_end ? plain_steps(s, VARID_MAX_FRAMES, false) : plain_steps(s, VARID_MAX_FRAMES, true)) {
		return 0;
	}
	over = rules == BASIC_RULES ? walk_step(s, VARID_MAX_FRAMES) : walk_step_any(s, VARID_MAX_FRAMES);
	asm volatile("" : "+r"(over)); // clang knows that it is 0 or 1, the verifier does not
	return over ? 1 : 0;
}

static long walk_callback(__u32 index, void *unused)
{
	return turn(BASIC_RULES);
}

static long walk_callback_any(__u32 index, void *unused)
{
	return turn(VARID_ALL_RULES);
}

static __always_inline int start_at(struct scratch *s, __u64 base, __u32 tid, __u64 reg_frame, __u64 reg_pc,
				    const __u32 rules)
{
	struct varid_leaf leaf = {
		.ip = s->record.regs[REG_IP(s->record.flags)],
		.sp = s->record.regs[REG_SP(s->record.flags)],
		.frame = reg_frame,
		.pc = reg_pc,
		.rule = s->rule,
	};

	if (rules != BASIC_RULES) {
		const struct varid_rule *quick = &s->layout.rules[s->layout.quick_rule & (VARID_MAX_RULES - 1)];

		leaf.quick_frame = s->record.regs[quick->reg_frame & (VARID_REGS - 1)];
		leaf.quick_pc = s->record.regs[quick->reg_pc & (VARID_REGS - 1)];
		leaf.link = s->record.regs[REG_LINK(s->record.flags)];
	}
	if (rules != BASIC_RULES && s->state.flags) {
		leaf.state = s->state.flags;
		leaf.state_reg = s->record.regs[s->state.reg & (VARID_REGS - 1)];
		leaf.cfa_word = s->state.cfa_word;
		leaf.cfa_bias = s->state.cfa_bias;
	}

	return varid_walk_start(&s->walk, &s->layout, rules, base, tid, &leaf);
}

__noinline int start(struct scratch *s, __u64 base, __u32 tid, __u64 reg_frame, __u64 reg_pc)
{
	return s ? start_at(s, base, tid, reg_frame, reg_pc, BASIC_RULES) : VARID_WALK_TORN;
}

__noinline int start_any(struct scratch *s, __u64 base, __u32 tid, __u64 reg_frame, __u64 reg_pc)
{
	return s ? start_at(s, base, tid, reg_frame, reg_pc, VARID_ALL_RULES) : VARID_WALK_TORN;
}

// Begins at a base that was the thread's once. Only its innermost frame, which is the one in the register, tells that it is still.
static __always_inline int resume(struct scratch *s, __u64 base, __u64 reg_frame, __u64 reg_pc, const __u32 rules)
{
	int result;

	if (s->layout.rules[0].kind == VARID_RULE_SHADOW ||
	    (rules != BASIC_RULES && (s->state.flags || s->rule == s->layout.quick_rule)))
		return VARID_WALK_END;
	result = start_at(s, base, 0, reg_frame, reg_pc, rules);
	return s->walk.next == VARID_ADDRESS(reg_frame) ? result : VARID_WALK_END;
}

// The rule whose body the ip is in, by its index, or VARID_NO_RULE.
static __always_inline __u32 rule_at(const struct varid_target *target, __u64 ip, const __u32 rules)
{
	const __u32 count = rules == BASIC_RULES ? 1 : VARID_MAX_RULES;

#pragma unroll
	for (__u32 i = 0; i < count; i++)
		if (ip >= target->body[i].start && ip < target->body[i].end)
			return i;
	return VARID_NO_RULE;
}

// The states of AT_SP rules' code, a slot for each build of a VM.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STATE_SLOTS);
	__type(key, __u32);
	__type(value, struct varid_states);
} states SEC(".maps");

// Sets the state of a slot that the instruction ip, in bytes from the start of the code, is in, if there is one. A function of its
// own: the verifier follows each turn of the search once, and not once for each way that leads here.
__noinline int find_state(struct scratch *s, __u32 slot, __u32 ip)
{
	const struct varid_states *of;
	__u32 at = 0;

	if (!s)
		return 0;
	of = bpf_map_lookup_elem(&states, &slot);
	if (!of || !of->count)
		return 0;
#pragma unroll
	for (__u32 half = VARID_MAX_STATES / 2; half; half /= 2) {
		const __u32 next = (at + half) & (VARID_MAX_STATES - 1);

		if (next < of->count && of->states[next].start <= ip)
			at = next;
	}
	if (of->states[at & (VARID_MAX_STATES - 1)].start <= ip)
		s->state = of->states[at & (VARID_MAX_STATES - 1)];
	return 0;
}

// Where what the walk that is over has read ends.
static __always_inline void remember_end(struct scratch *s, struct thread *thread)
{
	if (!s->reach || s->seen_end < s->reach)
		return;
	thread->frames_end = s->seen_end - s->reach > s->record.frames * SPARSE ? 0 : s->seen_end;
}

// Where the first frame that the walk will come to lies.
static __always_inline __u64 first_frame(struct scratch *s, const __u32 rules)
{
	return rules != BASIC_RULES && s->walk.quick ? s->walk.quick : s->walk.next;
}

static __always_inline void walk(struct scratch *s, struct task_struct *task, struct varid_target *target,
				 const int has_bpf_loop, const __u32 rules)
{
	__u64 base = 0, reg_frame = 0, reg_pc = 0;
	__u64 ip = s->record.regs[REG_IP(s->record.flags)];
	struct thread *thread = &s->threads[s->record.tid & (THREADS - 1)];
	__u64 id = (__u64)s->record.pid << 32 | s->record.tid;
	void *slot;
	// The program for all rules is not loaded.
	const __u32 linked_only = target->rules & ~rules ? VARID_LINKED_ONLY : 0;
	__u32 rule, tid;
	int result;

	if (!(target->flags & VARID_TARGET_READY)) {
		s->record.flags |= VARID_NOT_READY;
		return;
	}
	rule = rule_at(target, ip, rules);
	// A list's first frame may be a caller's, unless the ip is in its loop.
	if (linked_only && (target->layout.rules[0].kind != VARID_RULE_LIST ||
			    (target->flags & VARID_TARGET_NO_STACK && rule == VARID_NO_RULE))) {
		s->record.flags |= VARID_NO_WALK | VARID_NOT_READY;
		return;
	}
	if (rules == BASIC_RULES) {
		__builtin_memcpy(&s->layout, &target->layout, BASIC_LAYOUT_SIZE);
		__builtin_memcpy(&s->layout.rules[0], &target->layout.rules[0], BASIC_RULE_SIZE);
	} else {
		s->layout = target->layout;
	}
	// Where there are states, they say more exactly where the registers are valid.
	if (rules != BASIC_RULES && target->states && rule == s->layout.quick_rule)
		rule = VARID_NO_RULE;
	s->rule = rule;
	if (rule != VARID_NO_RULE) {
		const struct varid_rule *of = &s->layout.rules[rule & (VARID_MAX_RULES - 1)];

		s->record.flags |= VARID_IN_BODY;
		reg_frame = s->record.regs[of->reg_frame & (VARID_REGS - 1)] + of->frame_bias;
		reg_pc = s->record.regs[of->reg_pc & (VARID_REGS - 1)];
	}
	if (rules != BASIC_RULES) {
		const struct varid_rule *of = &s->layout.rules[s->layout.quick_rule & (VARID_MAX_RULES - 1)];

		s->state.flags = 0;
		if (target->states && s->layout.quick_rule != VARID_NO_RULE && ip >= of->code_start && ip < of->code_end)
			find_state(s, target->states - 1, ip - of->code_start);
		if (s->state.flags) {
			s->record.flags |= s->state.flags & VARID_STATE_HAS_PC ? VARID_IN_BODY : 0;
			reg_frame = s->record.regs[of->reg_frame & (VARID_REGS - 1)];
			reg_pc = s->record.regs[of->reg_pc & (VARID_REGS - 1)];
		}
	}
	s->copy_len = 0;
	s->copy_end = 0;
	s->copy_sum = 0;
	if (thread->id != id || !reg_frame || resume(s, thread->base, reg_frame, reg_pc, rules) != VARID_WALK_FRAME) {
		slot = (void *)VARID_ADDRESS(thread_pointer(task, s->record.flags) + s->layout.tls_offset);
		if (bpf_probe_read_user(&base, s->layout.word == 4 ? 4 : sizeof(base), slot) || !base) {
			s->record.flags |= VARID_NO_BASE;
			return;
		}
		s->copy_end = VARID_ADDRESS(base) + s->layout.thread_tid + COPY_FIRST;
		tid = tid_inside(task, s->record.tid, target->flags);
		result = rules == BASIC_RULES ? start(s, base, tid, reg_frame, reg_pc) :
						start_any(s, base, tid, reg_frame, reg_pc);
		if (result != VARID_WALK_FRAME) {
			s->record.flags |= result == VARID_WALK_TORN ? VARID_TORN | linked_only : VARID_NO_BASE;
			return;
		}
		if (thread->id != id || thread->base != base)
			thread->frames_end = first_frame(s, rules) + COPY_UNKNOWN;
		thread->id = id;
		thread->base = base;
	}
	s->record.flags |= linked_only;
	if (rules != BASIC_RULES && varid_is_tried(&s->walk))
		s->record.flags |= VARID_INNER;
	s->copy_end = thread->frames_end;
	s->seen_end = 0;
	if (target->flags & VARID_TARGET_NO_STACK) {
		if (rules == BASIC_RULES) {
			walk_step(s, 1);
			return;
		}
#pragma unroll
		for (int i = 0; i < OWN_FRAMES && !walk_step_any(s, 1) && !s->record.frames; i++)
			;
		return;
	}
	if (rules != BASIC_RULES)
		s->ended = 0;
	if (has_bpf_loop) {
		bpf_loop(VARID_MAX_FRAMES + 1, rules == BASIC_RULES ? walk_callback : walk_callback_any, NULL, 0);
	} else {
		for (int frame = 0; frame <= MAX_FRAMES_UNROLLED; frame++) {
			forget_registers();
			if (rules == BASIC_RULES ? walk_step(s, MAX_FRAMES_UNROLLED) :
						   walk_step_any(s, MAX_FRAMES_UNROLLED))
				break;
		}
	}
	// A turn may have left a frame of the VM's own.
	if (rules != BASIC_RULES && !s->ended)
		s->record.flags |= VARID_FRAMES_TRUNCATED;
	remember_end(s, thread);
}

#endif
