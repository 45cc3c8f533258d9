// SPDX-License-Identifier: GPL-2.0 OR MIT
// Captures the current thread at each hit of a uprobe or kprobe, as for a sample.
//
// At a uprobe the registers are those of user code, at a kprobe the kernel's. A kprobe's program is not preempted. A uprobe's
// can be preempted by another thread that hits it on the same CPU (since 6.0), so a thread owns its scratch while the program
// runs.
#define VARID_CAN_BE_PREEMPTED
#include "capture.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// The hits, or bytes, per sample.
const volatile __u64 varid_hits = 1;

// The probed function is one of HotSpot's that allocate: (Klass *, address, bytes, ...). A hit counts as its bytes.
const volatile __u32 varid_allocations = 0;

// The hits, or bytes, of targets on a CPU that have no sample yet.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __s64);
} hits SEC(".maps");

// The free scratches. The loader fills the stack.
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__type(value, __u32);
} idle_scratches SEC(".maps");

// The scratches in use, by their threads' tids.
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

// Takes a scratch for the current thread. Returns 0 on success.
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

// As count(), but safe against preemption by another thread that counts.
static __always_inline void count_alone(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

// Returns what a hit counts as.
static __always_inline __u64 weight_of(struct pt_regs *ctx)
{
	return varid_allocations ? CTX_ARGUMENT_3(ctx) : 1;
}

// Counts a hit. Returns true if a sample is due.
static __always_inline bool is_due(__u64 weight)
{
	__u32 zero = 0;
	__s64 *n = varid_hits > 1 ? bpf_map_lookup_elem(&hits, &zero) : NULL, counted;

	if (!n)
		return true;
	// Two threads may both find that a sample is due. The following sample then takes more hits.
	__sync_fetch_and_add(n, weight);
	counted = *(volatile __s64 *)n;
	if (counted < (__s64)varid_hits)
		return false;
	__sync_fetch_and_add(n, -(__s64)((__u64)counted - (__u64)counted % varid_hits));
	return true;
}

static __always_inline int hit(struct pt_regs *ctx, const int has_bpf_loop, const __u32 rules)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();
	const __u64 weight = weight_of(ctx);
	struct varid_target *target;
	struct scratch *s;
	__u32 flags = 0;

	if (!id || !task->mm)
		return 0;
	target = target_of(task, id >> 32, &flags);
	if (!target)
		return 0;
	// The program that made the tail call has counted the hit.
	if (rules == BASIC_RULES) {
		if (!is_due(weight))
			return 0;
		if (needs_walker(target) && varid_tail_calls)
			bpf_tail_call(ctx, &walkers, 0); // returns only if there is none
	}
	count_alone(VARID_COUNT_SAMPLES);
	if (take_scratch(id)) {
		count_alone(VARID_COUNT_NO_SPACE);
		return 0;
	}
	s = own_scratch();
	if (!s)
		return 0;
	begin_record(s, id, weight > varid_hits ? weight : varid_hits);
	if (varid_allocations)
		s->record.allocated = CTX_ARGUMENT_1(ctx);
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
