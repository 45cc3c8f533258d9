// SPDX-License-Identifier: GPL-2.0 OR MIT
// Captures the current thread at each hit of a raw tracepoint, as for a sample.
#include "capture.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// The number of hits per sample.
const volatile __u64 varid_hits = 1;

// The hits of targets on a CPU since its last sample.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} hits SEC(".maps");

static __always_inline int hit(void *ctx, const int has_bpf_loop, const __u32 rules)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid(), *count_of_cpu;
	struct varid_target *target;
	struct scratch *s;
	__u32 flags = 0, zero = 0;

	if (!id || !task->mm)
		return 0;
	target = target_of(task, id >> 32, &flags);
	s = own_scratch();
	count_of_cpu = bpf_map_lookup_elem(&hits, &zero);
	if (!target || !s || !count_of_cpu)
		return 0;
	// The program that made the tail call has counted the hit.
	if (rules == BASIC_RULES) {
		if (++*count_of_cpu < varid_hits)
			return 0;
		*count_of_cpu = 0;
		if (needs_walker(target) && varid_tail_calls)
			bpf_tail_call(ctx, &walkers, 0); // returns only if there is none
	}
	count(VARID_COUNT_SAMPLES);
	begin_record(s, id, varid_hits);
	flags |= take_user_registers(s, task);
	s->record.flags = flags;
	s->record.ip = s->record.regs[REG_IP(flags)];
	take_stacks(ctx, s, task, target, has_bpf_loop, rules);
	if (output_record(s))
		count(VARID_COUNT_NO_SPACE);
	return 0;
}

SEC("raw_tp")
int varid_hit(void *ctx)
{
	return hit(ctx, 1, BASIC_RULES);
}

SEC("raw_tp")
int varid_hit_no_loop(void *ctx)
{
	return hit(ctx, 0, BASIC_RULES);
}

SEC("raw_tp")
int varid_hit_any(void *ctx)
{
	return hit(ctx, 1, VARID_ALL_RULES);
}

SEC("raw_tp")
int varid_hit_any_no_loop(void *ctx)
{
	return hit(ctx, 0, VARID_ALL_RULES);
}
