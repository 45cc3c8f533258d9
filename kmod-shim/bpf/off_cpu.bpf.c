// SPDX-License-Identifier: GPL-2.0 OR MIT
// Measures how long a process's threads do not run, and captures where they wait: programs on the scheduler's raw tracepoints.
//
// When a thread leaves its CPU, its stacks are captured in its own context, in the same record as a sample's. When it runs again, the
// duration is known, and a second, short record contains it. Short waits add up: a thread gets the second record when its waits are as
// long as a period. The reader joins both records.
//
// The cost is bounded. If a thread leaves its CPU very often, only one of several waits (their number is the stride) is captured,
// chosen at random. The others count towards the next sample. Each CPU has a limit of its own, too.
#include "capture.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MAX_THREADS 65536
#define WINDOW_SHIFT 27     // length of a window in nanoseconds: 0.13 s
#define THREAD_LIMIT 256    // captured waits of a thread per window: about 2,000 a second
#define CPU_LIMIT 1024      // the same for a CPU
#define RARE 32             // up to this number of switches per window, the CPU's limit for a thread is
#define CPU_LIMIT_RARE 8192 // this one: otherwise threads that switch often would take the stacks of others
#define MAX_STRIDE_SHIFT 12
#define TASK_DEAD 0x80

// Nanoseconds of waits per sample of a thread.
const volatile __u64 varid_wait_period = 1000000;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_THREADS);
	__type(key, __u32);
	__type(value, struct varid_wait);
} waits SEC(".maps");

// The number of captures on a CPU in a window.
struct budget {
	__u64 window;
	__u32 captured;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct budget);
} budgets SEC(".maps");

// Returns a count that decays: the previous window counts half, older ones nothing.
static __always_inline __u32 faded(__u32 count, __u64 before, __u64 window)
{
	if (before == window)
		return count;
	return before + 1 == window ? count / 2 : 0;
}

// Returns the power of two by which a count must be divided to stay within the limit.
static __always_inline __u32 stride_of(__u32 count, __u32 limit)
{
	__u32 stride = 1;

	count /= limit;
#pragma unroll
	for (int i = 0; i < MAX_STRIDE_SHIFT; i++)
		if (count >> i)
			stride = 2u << i;
	return stride;
}

// Chooses whether this wait is captured. Returns its stride: it stands for that many waits. 0: it is not captured.
static __always_inline __u32 choose(struct varid_wait *wait, __u64 now, bool preempted)
{
	__u64 window = now >> WINDOW_SHIFT;
	__u32 zero = 0, stride, limit, random = bpf_get_prandom_u32();
	struct budget *budget = bpf_map_lookup_elem(&budgets, &zero);

	if (!budget)
		return 0;
	wait->switches = faded(wait->switches, wait->window, window) + (preempted ? 0 : 1);
	wait->window = window;
	// The scheduler preempts a thread only at ticks. That is rare enough, and such waits may be long.
	stride = preempted ? 1 : stride_of(wait->switches, THREAD_LIMIT);
	if (random & (stride - 1))
		return 0;
	budget->captured = faded(budget->captured, budget->window, window) + 1;
	budget->window = window;
	random /= stride;
	limit = stride_of(budget->captured, wait->switches <= RARE ? CPU_LIMIT_RARE : CPU_LIMIT);
	return random & (limit - 1) ? 0 : stride * limit;
}

static __always_inline long output_end(struct varid_wait_end *end)
{
	struct scratch *s = own_scratch();

	// Does not count towards a wakeup: the record is short, and the reader polls the ring a few times a second anyway.
	if (s)
		s->unsaid += sizeof(*end);
	return bpf_ringbuf_output(&records, end, sizeof(*end), BPF_RB_NO_WAKEUP);
}

// Ends a thread's wait, and reports what its samples stand for, if it has any.
static __always_inline void end_wait(struct varid_wait *wait, __u32 tid)
{
	__u64 now = bpf_ktime_get_ns(), woken = wait->woken ? wait->woken : now;
	struct varid_wait_end end = {
		.time = now,
		.pid = wait->pid,
		.tid = tid,
		.cpu = bpf_get_smp_processor_id(),
		.flags = VARID_WAIT_END | (wait->stride ? VARID_WAIT_CAPTURED : 0),
		.ip = wait->ip,
	};
	__u64 ns[VARID_WAIT_KINDS] = { woken - wait->since, now - woken };

	wait->since = 0;
	wait->assumed = 0;
#pragma unroll
	for (int kind = 0; kind < VARID_WAIT_KINDS; kind++) {
		// A long wait without known stacks must not count towards the sample of another place.
		if (!wait->stride && wait->ip && ns[kind] >= varid_wait_period) {
			end.ns[kind] = ns[kind];
			continue;
		}
		wait->unsampled[kind] += ns[kind];
		wait->captured[kind] += ns[kind] * wait->stride;
		if (wait->stride && wait->captured[kind] >= varid_wait_period)
			end.ns[kind] = wait->unsampled[kind];
	}
	if (!(end.ns[0] | end.ns[1]))
		return;
	if (output_end(&end)) {
		// The wait counts towards the next sample.
		if (!wait->stride) {
			wait->unsampled[0] += end.ns[0];
			wait->unsampled[1] += end.ns[1];
		}
		return;
	}
	if (!wait->stride)
		return;
#pragma unroll
	for (int kind = 0; kind < VARID_WAIT_KINDS; kind++) {
		if (!end.ns[kind])
			continue;
		wait->unsampled[kind] = 0;
		wait->captured[kind] = 0;
	}
}

// Ends a thread: time without a sample counts towards its last one.
static __always_inline void end_thread(struct varid_wait *wait, __u32 tid)
{
	struct varid_wait_end end = {
		.time = bpf_ktime_get_ns(),
		.pid = wait->pid,
		.tid = tid,
		.cpu = bpf_get_smp_processor_id(),
		.flags = VARID_WAIT_END | VARID_WAIT_CAPTURED | VARID_THREAD_ENDS,
		.ip = wait->ip,
		.ns = { wait->unsampled[0], wait->unsampled[1] },
	};

	if (output_end(&end))
		count(VARID_COUNT_NO_SPACE);
	bpf_map_delete_elem(&waits, &tid);
}

static __always_inline void capture(void *ctx, struct scratch *s, struct task_struct *task, struct varid_target *target,
				    struct varid_wait *wait, const int has_bpf_loop, const __u32 rules)
{
	count(VARID_COUNT_SAMPLES);
	begin_record(s, bpf_get_current_pid_tgid(), 0);
	s->record.flags = take_user_registers(s, task);
	s->record.ip = wait->ip;
	take_stacks(ctx, s, task, target, has_bpf_loop, rules);
	if (output_record(s)) {
		count(VARID_COUNT_NO_SPACE);
		wait->stride = 0;
	}
}

// Starts a wait: the current thread leaves its CPU.
static __always_inline void begin_wait(struct bpf_raw_tracepoint_args *ctx, const int has_bpf_loop)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id, state = task->__state, flags = 0;
	struct varid_target *target;
	struct varid_wait *wait;
	struct scratch *s;

	if (!id)
		return;
	wait = bpf_map_lookup_elem(&waits, &tid);
	if (state & TASK_DEAD) {
		if (wait)
			end_thread(wait, tid);
		return;
	}
	if (!wait && !task->mm)
		return;
	target = target_of(task, id >> 32, &flags);
	s = own_scratch();
	if (!target || !s) {
		if (wait)
			bpf_map_delete_elem(&waits, &tid);
		return;
	}
	if (!wait) {
		struct varid_wait first = { .pid = id >> 32 };

		bpf_map_update_elem(&waits, &tid, &first, BPF_NOEXIST);
		wait = bpf_map_lookup_elem(&waits, &tid);
		if (!wait) {
			count(VARID_COUNT_NO_THREAD);
			return;
		}
	}
	// Not every switch is seen (perf's own recording of the tracepoint lacks the same ones), so the thread's last wait may not have
	// been ended.
	if (wait->since && !wait->assumed)
		end_wait(wait, tid);
	wait->assumed = 0;
	count(VARID_COUNT_WAITS);
	wait->since = bpf_ktime_get_ns();
	wait->woken = ctx->args[0] || !state ? wait->since : 0;
	wait->stride = choose(wait, wait->since, ctx->args[0]);
	flags = take_user_registers(s, task);
	wait->ip = s->record.regs[REG_IP(flags)];
	if (!wait->stride)
		return;
	if (needs_walker(target) && varid_tail_calls)
		bpf_tail_call(ctx, &walkers, 0); // returns only if there is none
	capture(ctx, s, task, target, wait, has_bpf_loop, BASIC_RULES);
}

static __always_inline int switched(struct bpf_raw_tracepoint_args *ctx, const int has_bpf_loop)
{
	struct task_struct *next = (struct task_struct *)ctx->args[2];
	__u32 tid = BPF_CORE_READ(next, pid);
	struct varid_wait *wait = tid ? bpf_map_lookup_elem(&waits, &tid) : NULL;

	if (wait && wait->since)
		end_wait(wait, tid);
	begin_wait(ctx, has_bpf_loop);
	return 0;
}

// The program for all rules: called for a thread that belongs to a target.
static __always_inline int capture_any(struct bpf_raw_tracepoint_args *ctx, const int has_bpf_loop)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id, flags = 0;
	struct varid_target *target = target_of(task, id >> 32, &flags);
	struct varid_wait *wait = bpf_map_lookup_elem(&waits, &tid);
	struct scratch *s = own_scratch();

	if (target && wait && s)
		capture(ctx, s, task, target, wait, has_bpf_loop, VARID_ALL_RULES);
	return 0;
}

SEC("raw_tp/sched_switch")
int varid_switch(struct bpf_raw_tracepoint_args *ctx)
{
	return switched(ctx, 1);
}

SEC("raw_tp/sched_switch")
int varid_switch_no_loop(struct bpf_raw_tracepoint_args *ctx)
{
	return switched(ctx, 0);
}

SEC("raw_tp/sched_switch")
int varid_switch_any(struct bpf_raw_tracepoint_args *ctx)
{
	return capture_any(ctx, 1);
}

SEC("raw_tp/sched_switch")
int varid_switch_any_no_loop(struct bpf_raw_tracepoint_args *ctx)
{
	return capture_any(ctx, 0);
}

SEC("raw_tp/sched_wakeup")
int varid_wakeup(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 tid = BPF_CORE_READ(task, pid);
	struct varid_wait *wait = bpf_map_lookup_elem(&waits, &tid);

	if (wait && wait->since && !wait->woken)
		wait->woken = bpf_ktime_get_ns();
	return 0;
}

// A new thread waits for a CPU.
SEC("raw_tp/sched_wakeup_new")
int varid_wakeup_new(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 tid = BPF_CORE_READ(task, pid), tgid = BPF_CORE_READ(task, tgid), flags = 0;
	__u64 now = bpf_ktime_get_ns();
	struct varid_wait first = { .since = now, .woken = now, .pid = tgid };

	if (target_of(task, tgid, &flags) && bpf_map_update_elem(&waits, &tid, &first, BPF_ANY))
		count(VARID_COUNT_NO_THREAD);
	return 0;
}
