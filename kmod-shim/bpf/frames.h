/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Walks a thread's managed frames: walker.h over copies of the thread's memory, with optimised rules. */
#ifndef VARID_BPF_FRAMES_H
#define VARID_BPF_FRAMES_H

#include "rules/at_sp.h"
#include "rules/java.h"
#include "rules/list.h"

#define MAX_FRAMES_UNROLLED 96 // without bpf_loop: the verifier follows every iteration
#define OWN_FRAMES 3       // maximum number of the VM's own frames above the innermost method, when only that is requested

// The rules that every kernel's program walks. Processes whose layouts have other rules use a second program, which is loaded when
// there is such a process. So the basic rules cost no more than without it.
#define BASIC_RULES                                                                    \
	(VARID_RULE_BIT(VARID_RULE_LIST) | VARID_RULE_BIT(VARID_RULE_SHADOW) |         \
	 VARID_RULE_BIT(VARID_RULE_SAVE_AREA))
#define BASIC_RULE_SIZE 24 // bytes of a rule that the basic rules read
#define BASIC_LAYOUT_SIZE 32 // and of a layout

_Static_assert(offsetof(struct varid_rule, cfa_word) <= BASIC_RULE_SIZE, "a basic rule's fields");
_Static_assert(offsetof(struct varid_layout, method_class) <= BASIC_LAYOUT_SIZE, "how basic rules are linked");

// Returns true if a process's frames follow a rule that only the second program walks.
static __always_inline bool needs_walker(const struct varid_target *target)
{
	return target->rules & ~BASIC_RULES || target->flags & VARID_TARGET_JAVA;
}

// Takes one step of the walk. Returns 0 to continue.
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

	if (rules != BASIC_RULES)
		at_sp_leaf(s, &leaf);
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

// Starts at the base that the thread had before. The base is valid only if its innermost frame is the one in the register.
static __always_inline int resume(struct scratch *s, __u64 base, __u64 reg_frame, __u64 reg_pc, const __u32 rules)
{
	int result;

	if (s->layout.rules[0].kind == VARID_RULE_SHADOW ||
	    (rules != BASIC_RULES && (s->state.flags || s->rule == s->layout.quick_rule)))
		return VARID_WALK_END;
	result = start_at(s, base, 0, reg_frame, reg_pc, rules);
	return s->walk.next == VARID_ADDRESS(reg_frame) ? result : VARID_WALK_END;
}

// Returns the index of the rule whose body contains the ip, or VARID_NO_RULE.
static __always_inline __u32 rule_at(const struct varid_target *target, __u64 ip, const __u32 rules)
{
	const __u32 count = rules == BASIC_RULES ? 1 : VARID_MAX_RULES;

#pragma unroll
	for (__u32 i = 0; i < count; i++)
		if (ip >= target->body[i].start && ip < target->body[i].end)
			return i;
	return VARID_NO_RULE;
}

// Remembers where the memory ends that the finished walk has read.
static __always_inline void remember_end(struct scratch *s, struct thread *thread)
{
	if (!s->reach || s->seen_end < s->reach)
		return;
	thread->frames_end = s->seen_end - s->reach > s->record.frames * SPARSE ? 0 : s->seen_end;
}

// Returns the address of the first frame of the walk.
static __always_inline __u64 first_frame(struct scratch *s, const __u32 rules)
{
	return rules != BASIC_RULES && s->walk.quick ? s->walk.quick : s->walk.next;
}

// HotSpot's frames are the unwinder's. They are no managed frames of the record.
static __always_inline void take_java(struct scratch *s, const struct varid_target *target, const int has_bpf_loop)
{
	__u32 pid = s->record.pid;
	const struct varid_jvm *jvm = bpf_map_lookup_elem(&jvms, &pid);

	if (jvm && !(s->record.flags & (VARID_COMPAT | VARID_INTERRUPTED)) && !(target->flags & VARID_TARGET_NO_STACK))
		walk_java(s, jvm, has_bpf_loop, MAX_FRAMES_UNROLLED);
}

static __always_inline void walk(struct scratch *s, struct task_struct *task, struct varid_target *target,
				 const int has_bpf_loop, const __u32 rules)
{
	__u64 base = 0, reg_frame = 0, reg_pc = 0;
	__u64 ip = s->record.regs[REG_IP(s->record.flags)];
	struct thread *thread = &s->threads[s->record.tid & (THREADS - 1)];
	__u64 id = (__u64)s->record.pid << 32 | s->record.tid;
	void *slot;
	// Set if the program for all rules is needed but not loaded.
	const __u32 linked_only = target->rules & ~rules ? VARID_LINKED_ONLY : 0;
	__u32 rule, tid;
	int result;

	if (!(target->flags & VARID_TARGET_READY)) {
		s->record.flags |= VARID_NOT_READY;
		if (rules != BASIC_RULES && target->flags & VARID_TARGET_JAVA)
			take_java(s, target, has_bpf_loop);
		return;
	}
	rule = rule_at(target, ip, rules);
	// The first frame of a list may be a caller's, unless the ip is in the list's loop.
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
	// States define more precisely where the registers are valid.
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
	// The last iteration may have left one of the VM's own frames.
	if (rules != BASIC_RULES && !s->ended)
		s->record.flags |= VARID_FRAMES_TRUNCATED;
	remember_end(s, thread);
}

#endif
