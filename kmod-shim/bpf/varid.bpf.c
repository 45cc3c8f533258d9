// SPDX-License-Identifier: GPL-2.0 OR MIT
// The shim as a BPF program. At a perf event's overflow it reads the interrupted thread's registers, managed frames,
// kernel callchain, the slice of stack that an unwinder needs, and the frame links beyond it, and writes one record.
// It resolves nothing.
//
// Compiled once per architecture (-D__TARGET_ARCH_x86 or _arm64). Two entry points differ in how they loop: with
// bpf_loop (5.17), or with a bounded loop for older kernels. Each has a second program, which it tail-calls for
// processes whose frames follow other than the basic rules.
#include "capture.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} rings SEC(".maps");

// Keep the kernel's own sample of every overflow, even outside of targets. Set by the loader.
const volatile __u32 varid_keep_all = 0;

// Writes the record to its own ring. If that has no space, or its lock is not available in an NMI, writes it to the
// event's ring.
static __always_inline void hand_over(struct bpf_perf_event_data *ctx, struct scratch *s)
{
	__u64 size;

	if (varid_wake_bytes && !output_record(s))
		return;
	size = *(volatile __u64 *)&s->pos;
	asm volatile("" : "+r"(size));
	if (size > OUT_MAX)
		size = OUT_MAX;
	asm volatile("" : "+r"(size));
	if (size > OUT_MAX)
		return;
	if (bpf_perf_event_output(ctx, &rings, BPF_F_CURRENT_CPU, s->out, size) < 0)
		count(VARID_COUNT_NO_SPACE);
}

static __always_inline int sample(struct bpf_perf_event_data *ctx, const int has_bpf_loop, const __u32 rules)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();
	struct varid_target *target;
	struct scratch *s;
	__u32 flags = 0;

	if (!id)
		return varid_keep_all;
	target = target_of(task, id >> 32, &flags);
	s = own_scratch();
	if (!target || !s)
		return varid_keep_all;
	if (rules == BASIC_RULES && needs_walker(target) && varid_tail_calls)
		bpf_tail_call(ctx, &walkers, 0); // returns only if there is none
	count(VARID_COUNT_SAMPLES);

	begin_record(s, id, ctx->sample_period);
	if (CTX_IN_USER(&ctx->regs)) {
		if (CTX_COMPAT(&ctx->regs))
			flags |= VARID_COMPAT;
		COPY_REGS(s->record.regs, &ctx->regs);
	} else {
		flags |= take_user_registers(s, task);
	}
	s->record.ip = CTX_IP(&ctx->regs);
	s->record.flags = flags;
	take_stacks(ctx, s, task, target, has_bpf_loop, rules);
	hand_over(ctx, s);
	return varid_keep_all || target->flags & VARID_TARGET_KEEP_RAW ? 1 : 0;
}

SEC("perf_event")
int varid_sample(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 1, BASIC_RULES);
}

SEC("perf_event")
int varid_sample_no_loop(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 0, BASIC_RULES);
}

SEC("perf_event")
int varid_sample_any(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 1, VARID_ALL_RULES);
}

SEC("perf_event")
int varid_sample_any_no_loop(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 0, VARID_ALL_RULES);
}
