/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* HotSpot: takes the words of the stack that an unwinder needs beyond the copy, and the code of each frame. */
#ifndef VARID_BPF_RULES_JAVA_H
#define VARID_BPF_RULES_JAVA_H

#include "../copies.h"

#define SCAN_STEPS 64  // of the scan: each ends at a word that may be a return address, or after VARID_SCANNED bytes

// The JVMs of targets, by tgid.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct varid_jvm);
} jvms SEC(".maps");

static __always_inline bool put_java(struct scratch *s, const struct varid_java_frame *frame)
{
	__u64 pos = s->pos;

	if (s->record.java >= VARID_MAX_JAVA || pos > OUT_MAX - sizeof(*frame))
		return false;
	// The verifier must see the bound on the register that is added.
	asm volatile("" : "+r"(pos));
	__builtin_memcpy(s->out + (pos & 0xffff), frame, sizeof(*frame));
	s->pos = pos + sizeof(*frame);
	s->record.java++;
	return true;
}

// Takes the next frame. Returns 0 to continue. try: the walk stays where it is, and the frame must have a caller.
__noinline int step_java(struct scratch *s, bool try)
{
	struct varid_java_frame frame;
	__u64 sp, pc, fp;
	bool leads_on;

	if (!s)
		return 1;
	sp = s->java.sp;
	pc = s->java.pc;
	fp = s->java.fp;
	if (varid_step_java(&s->walk, &s->jvm, &s->java, &frame) != VARID_WALK_FRAME)
		return 1;
	if (!try) {
		if (!put_java(s, &frame))
			return 1;
		if (!s->java.resumes)
			return 0;
		varid_java_resumes(&s->java, frame.at, &frame);
		return !put_java(s, &frame);
	}
	leads_on = varid_java_leads_on(&s->jvm, &s->java);
	s->java.sp = sp;
	s->java.pc = pc;
	s->java.fp = fp;
	s->java.entry = 0;
	return !leads_on;
}

// Returns an enum varid_java_start.
__noinline int start_java(struct scratch *s)
{
	struct varid_java_frame leaf;
	int start;

	if (!s)
		return VARID_JAVA_NOWHERE;
	start = varid_start_java(&s->walk, &s->jvm, &s->java, s->record.regs[VARID_X86_RIP],
				 s->record.regs[VARID_X86_RSP], s->record.regs[VARID_X86_RBP],
				 s->record.regs[VARID_X86_R15], &leaf);
	if ((start == VARID_JAVA_MORE || leaf.sender) && leaf.code)
		put_java(s, &leaf);
	return start;
}

__noinline int scan_java(struct scratch *s)
{
	return s ? varid_scan_java(&s->walk, &s->jvm, &s->java, s->record.regs[VARID_X86_RSP],
				   s->record.regs[VARID_X86_RBP]) :
		   VARID_JAVA_NOWHERE;
}

// Returns 0 to scan on.
static __always_inline long tried(struct scratch *s, int start)
{
	if (start == VARID_JAVA_FOUND || (start == VARID_JAVA_TRY && !step_java(s, true)))
		return 1;
	s->java.pc = 0; // in no code
	return start == VARID_JAVA_NOWHERE;
}

static long scan_callback(__u32 index, void *unused)
{
	struct scratch *s = own_scratch();

	return s ? tried(s, scan_java(s)) : 1;
}

static long java_callback(__u32 index, void *unused)
{
	struct scratch *s = own_scratch();
	int over = s ? step_java(s, false) : 1;

	asm volatile("" : "+r"(over)); // clang knows that it is 0 or 1, the verifier does not
	return over ? 1 : 0;
}

// Scans for a frame at which the walk may start.
static __always_inline void search_java(struct scratch *s, const int has_bpf_loop)
{
	if (has_bpf_loop) {
		bpf_loop(SCAN_STEPS, scan_callback, NULL, 0);
		return;
	}
	for (int step = 0; step < SCAN_STEPS; step++) {
		forget_registers();
		if (tried(s, scan_java(s)))
			break;
	}
}

// Takes the frames from the current one on.
static __always_inline void follow_java(struct scratch *s, const int has_bpf_loop, const __u32 limit)
{
	if (has_bpf_loop) {
		bpf_loop(VARID_MAX_JAVA + 1, java_callback, NULL, 0);
		return;
	}
	for (int frame = 0; frame < limit; frame++) {
		forget_registers();
		if (step_java(s, false))
			break;
	}
}

// limit: the most frames without bpf_loop.
static __always_inline void walk_java(struct scratch *s, const struct varid_jvm *jvm, const int has_bpf_loop,
				      const __u32 limit)
{
	struct thread *thread = &s->threads[s->record.tid & (THREADS - 1)];
	__u64 id = (__u64)s->record.pid << 32 | s->record.tid;
	__u64 sp = s->record.regs[VARID_X86_RSP];

	s->jvm = *jvm;
	s->java.stack = s->record.stack_addr;
	s->java.thread = thread->id == id ? thread->base : 0;
	s->layout.rules[0].kind = VARID_RULE_LIST; // its copies start where they are needed
	s->copy_len = 0;
	s->copy_sum = 0;
	s->seen_end = 0;
	s->copy_end = thread->id == id && thread->frames_end > sp ? thread->frames_end : sp + COPY_UNKNOWN;
	if (!tried(s, start_java(s)))
		search_java(s, has_bpf_loop);
	follow_java(s, has_bpf_loop, limit);
	for (int starts = 1; has_bpf_loop && starts < VARID_JAVA_STARTS && !s->java.entry; starts++) {
		forget_registers();
		search_java(s, has_bpf_loop);
		follow_java(s, has_bpf_loop, limit);
	}
	thread->id = id;
	thread->base = s->java.thread;
	thread->frames_end = s->java.sp;
}

#endif
