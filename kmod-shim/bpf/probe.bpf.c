// SPDX-License-Identifier: GPL-2.0 OR MIT
// Who comes by a place in the code? A program on a uprobe or kprobe captures the current thread as a sample does.
//
// At a uprobe the registers are those of user code, at a kprobe the kernel's. A kprobe's program runs to its end. A uprobe's can
// be preempted by another thread that comes by on the same CPU (since 6.0), so a scratch is a thread's as long as it runs.
#define VARID_CAN_BE_PREEMPTED
#include "capture.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// A sample stands for so many hits.
const volatile __u64 varid_hits = 1;

// Hits of targets on a CPU for which there is no sample yet.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __s64);
} hits SEC(".maps");

// The scratches that no thread has. The loader fills it.
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, __u32);
} idle_scratches SEC(".maps");

// The scratches that threads have, by their tids.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} taken_scratches SEC(".maps");

static __always_inline struct scratch *own_scratch(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u32 *slot = bpf_map_lookup_elem(&taken_scratches, &tid);

	return slot ? bpf_map_lookup_elem(&scratches, slot) : NULL;
}

// Takes a scratch for the current thread; 0: it has one.
static __always_inline long take_scratch(__u32 tid)
{
	__u32 slot;

	if (bpf_map_pop_elem(&idle_scratches, &slot))
		return -1;
	if (!bpf_map_update_elem(&taken_scratches, &tid, &slot, BPF_NOEXIST))
		return 0;
	bpf_map_push_elem(&idle_scratches, &slot, 0);
	return -1;
}

static __always_inline void give_scratch_back(__u32 tid)
{
	__u32 *taken = bpf_map_lookup_elem(&taken_scratches, &tid), slot;

	if (!taken)
		return;
	slot = *taken;
	bpf_map_delete_elem(&taken_scratches, &tid);
	bpf_map_push_elem(&idle_scratches, &slot, 0);
}

// As count(), where another thread may count in between.
static __always_inline void count_alone(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

// Counts a hit. Whether it completes the hits of a sample.
static __always_inline bool is_due(void)
{
	__u32 zero = 0;
	__s64 *n = varid_hits > 1 ? bpf_map_lookup_elem(&hits, &zero) : NULL;

	if (!n)
		return true;
	// Two threads may both see that their hits are enough. Then the next sample takes longer.
	__sync_fetch_and_add(n, 1);
	if (*(volatile __s64 *)n < (__s64)varid_hits)
		return false;
	__sync_fetch_and_add(n, -(__s64)varid_hits);
	return true;
}

static __always_inline int hit(struct pt_regs *ctx, const int has_bpf_loop, const __u32 rules)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();
	struct varid_target *target;
	struct scratch *s;
	__u32 flags = 0;

	if (!id || !task->mm)
		return 0;
	target = target_of(task, id >> 32, &flags);
	if (!target)
		return 0;
	// What another program has gone over to has counted the hit.
	if (rules == BASIC_RULES) {
		if (!is_due())
			return 0;
		if (target->rules & ~rules && varid_tail_calls)
			bpf_tail_call(ctx, &walkers, 0); // comes back if there is none
	}
	count_alone(VARID_COUNT_SAMPLES);
	if (take_scratch(id)) {
		count_alone(VARID_COUNT_NO_SPACE);
		return 0;
	}
	s = own_scratch();
	if (!s)
		return 0;
	begin_record(s, id, varid_hits);
	if (CTX_IN_USER(ctx)) {
		if (CTX_COMPAT(ctx))
			flags |= VARID_COMPAT;
		COPY_REGS(s->record.regs, ctx);
	} else {
		flags |= take_user_registers(s, task);
	}
	s->record.ip = CTX_IP(ctx);
	s->record.flags = flags;
	take_stacks(ctx, s, task, target, has_bpf_loop, rules);
	if (output_record(s))
		count_alone(VARID_COUNT_NO_SPACE);
	give_scratch_back(id);
	return 0;
}

SEC("kprobe")
int varid_probe(struct pt_regs *ctx)
{
	return hit(ctx, 1, BASIC_RULES);
}

SEC("kprobe")
int varid_probe_no_loop(struct pt_regs *ctx)
{
	return hit(ctx, 0, BASIC_RULES);
}

SEC("kprobe")
int varid_probe_any(struct pt_regs *ctx)
{
	return hit(ctx, 1, VARID_ALL_RULES);
}

SEC("kprobe")
int varid_probe_any_no_loop(struct pt_regs *ctx)
{
	return hit(ctx, 0, VARID_ALL_RULES);
}
