// SPDX-License-Identifier: GPL-2.0 OR MIT
// The shim as a BPF program: at a perf event's overflow, reads the interrupted
// thread's registers, managed frames, kernel callchain and the slice of stack that an
// unwinder will need, and hands them over in one record. It resolves nothing.
//
// Compiled once per architecture (-D__TARGET_ARCH_x86 or _arm64). Two entry points
// differ in how they loop: bpf_loop (5.17) and a bounded loop for older kernels.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "varid_record.h"

#define VARID_READ(dst, size, addr) bpf_probe_read_user(dst, size, (const void *)(addr))
#define VARID_OFFSET(offset) ((offset) & (VARID_WINDOW - 1))
#include "walker.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// The kernel's types, as far as they are read; offsets are relocated at load time.
#define KERNEL_TYPE __attribute__((preserve_access_index))

struct upid {
	int nr;
} KERNEL_TYPE;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL_TYPE;

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
} KERNEL_TYPE;

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define CTX_IN_USER(regs) (((regs)->cs & 3) == 3)
#define CTX_COMPAT(regs) 0
#elif defined(__TARGET_ARCH_arm64)
struct cpu_context_uw {
	unsigned long tp_value;
} KERNEL_TYPE;

struct thread_struct {
	struct cpu_context_uw uw;
} KERNEL_TYPE;

struct pt_regs {
	unsigned long regs[31], sp, pc, pstate;
};
#define CTX_IN_USER(regs) (((regs)->pstate & 0xf) == 0)
#define CTX_COMPAT(regs) ((regs)->pstate & 0x10) // PSR_MODE32_BIT
#else
#error "the shim knows the registers of x86 and arm64"
#endif

struct task_struct {
	int tgid;
	struct pid *thread_pid;
	struct task_struct *real_parent;
	struct thread_struct thread;
	void *mm;
} KERNEL_TYPE;

struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct varid_target);
} targets SEC(".maps");

// One slot: the target of --all, used for a process that has no entry of its own.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct varid_target);
} everyone SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VARID_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

// The kernel's own sample of every overflow comes, of strangers, too; set by the loader.
const volatile __u32 varid_keep_all = 0;

#define MAX_GENERATIONS 5
#define MAX_FRAMES_UNROLLED 96 // without bpf_loop: the verifier follows every turn
#define OUT_MAX 65400 // of a perf record's 65,535 bytes

struct scratch {
	struct varid_walk walk;
	struct varid_layout layout;
	__u32 pos; // bytes of out in use
	__u64 reach; // address of the innermost frame that is not a quick one
	union {
		struct varid_record record;
		__u8 out[65536 + VARID_STACK_FULL]; // the second half only for the verifier
	};
};

// One for each CPU; not a per-CPU map, whose values are at most 32 KiB.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); // the loader says how many CPUs there can be
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

// What a turn of a loop leaves in registers would make each turn a state of its own to the
// verifier; read again from the map, every turn looks like the first.
static __always_inline void forget_registers(void)
{
	asm volatile("" ::: "memory");
}

static __always_inline struct scratch *scratch_of_this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

static __always_inline void count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		*n += 1;
}

// The target of this process, or that of an ancestor which is followed.
static __always_inline struct varid_target *target_of(struct task_struct *task, __u32 tgid, __u32 *flags)
{
	struct varid_target *target = bpf_map_lookup_elem(&targets, &tgid);
	struct task_struct *ancestor = task;
	__u32 zero = 0;

	if (target)
		return target->flags & VARID_TARGET_IGNORE ? NULL : target;
	// The daemon hears of a child when it next looks; by then there may be grandchildren.
#pragma unroll
	for (int generation = 0; generation < MAX_GENERATIONS; generation++) {
		__u32 parent;

		ancestor = BPF_CORE_READ(ancestor, real_parent);
		parent = BPF_CORE_READ(ancestor, tgid);
		if (parent <= 1)
			break;
		target = bpf_map_lookup_elem(&targets, &parent);
		if (!target)
			continue;
		if (!(target->flags & VARID_TARGET_FOLLOW)) {
			forget_registers(); // else clang masks the pointer, which the verifier forbids
			return NULL;
		}
		*flags |= VARID_INHERITED;
		return target;
	}
	target = bpf_map_lookup_elem(&everyone, &zero);
	return target && target->flags ? target : NULL;
}

#if defined(__TARGET_ARCH_x86)
#define COPY_REGS(to, from)                            \
	do {                                           \
		(to)[VARID_X86_RBX] = (from)->bx;      \
		(to)[VARID_X86_RBP] = (from)->bp;      \
		(to)[VARID_X86_R12] = (from)->r12;     \
		(to)[VARID_X86_R13] = (from)->r13;     \
		(to)[VARID_X86_R14] = (from)->r14;     \
		(to)[VARID_X86_R15] = (from)->r15;     \
		(to)[VARID_X86_RSP] = (from)->sp;      \
		(to)[VARID_X86_RIP] = (from)->ip;      \
	} while (0)
#define REG_SP(flags) VARID_X86_RSP
#define REG_IP(flags) VARID_X86_RIP
#define CTX_IP(regs) ((regs)->ip)

static __always_inline __u64 thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.fsbase);
}
#else
// A 32-bit process' r0 to r14 are the first ones.
#define COPY_REGS(to, from)                                                   \
	do {                                                                  \
		if (CTX_COMPAT(from)) {                                       \
			_Pragma("unroll") for (int i = 0; i < 8; i++)         \
				(to)[VARID_ARM_R4 + i] = (from)->regs[4 + i]; \
			(to)[VARID_ARM_LR] = (from)->regs[14];                \
			(to)[VARID_ARM_SP] = (from)->regs[13];                \
			(to)[VARID_ARM_PC] = (from)->pc;                      \
			break;                                                \
		}                                                             \
		_Pragma("unroll") for (int i = 0; i < 12; i++)                \
			(to)[VARID_ARM64_X19 + i] = (from)->regs[19 + i];     \
		(to)[VARID_ARM64_SP] = (from)->sp;                            \
		(to)[VARID_ARM64_PC] = (from)->pc;                            \
	} while (0)
#define REG_SP(flags) ((flags) & VARID_COMPAT ? VARID_ARM_SP : VARID_ARM64_SP)
#define REG_IP(flags) ((flags) & VARID_COMPAT ? VARID_ARM_PC : VARID_ARM64_PC)
#define CTX_IP(regs) ((regs)->pc)

static __always_inline __u64 thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.uw.tp_value);
}
#endif

// The thread's id as its own process knows it.
static __always_inline __u32 tid_inside(struct task_struct *task, __u32 tid, __u32 flags)
{
	struct pid *pid;
	__u32 level;
	int nr = 0;

	if (!(flags & VARID_TARGET_NAMESPACED))
		return tid;
	pid = BPF_CORE_READ(task, thread_pid);
	level = BPF_CORE_READ(pid, level);
	bpf_core_read(&nr, sizeof(nr), &pid->numbers[level & 31].nr);
	return nr;
}

// One step of the walk: 0 to go on.
static __always_inline long walk_step(struct scratch *s, __u32 limit)
{
	struct varid_frame frame;
	__u32 pos = s->pos;
	int result, entries;

	result = varid_walk_step(&s->walk, &s->layout, &frame);
	if (result == VARID_WALK_TORN)
		s->record.flags |= VARID_TORN;
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

static long walk_callback(__u32 index, void *unused)
{
	struct scratch *s = scratch_of_this_cpu();

	return s ? walk_step(s, VARID_MAX_FRAMES) : 1;
}

// Copies stack from the record's stack_addr on, a page at a time: the last page of a
// stack has no successor, and one absent page must not cost the others. 0 to go on.
static __always_inline long copy_page(struct scratch *s, __u32 want)
{
	__u64 at = s->record.stack_addr + s->record.stack_len;
	__u32 len = VARID_PAGE - (at & (VARID_PAGE - 1));
	__u32 pos = s->pos;

	if (s->record.stack_len >= want)
		return 1;
	if (len > want - s->record.stack_len)
		len = want - s->record.stack_len;
	if (pos > OUT_MAX - VARID_PAGE || len > VARID_PAGE) {
		s->record.flags |= VARID_STACK_TRUNCATED;
		return 1;
	}
	if (bpf_probe_read_user(s->out + pos, len, (const void *)at))
		return 1;
	s->record.stack_len += len;
	s->pos = pos + len;
	return 0;
}

static long copy_callback(__u32 index, void *want)
{
	struct scratch *s = scratch_of_this_cpu();

	return s ? copy_page(s, *(__u32 *)want) : 1;
}

static __always_inline void walk(struct scratch *s, struct task_struct *task, struct varid_target *target,
				 const int has_bpf_loop)
{
	__u64 base = 0, reg_frame = 0, reg_pc = 0;
	__u64 ip = s->record.regs[REG_IP(s->record.flags)];
	void *slot;
	int result;

	if (!(target->flags & VARID_TARGET_READY)) {
		s->record.flags |= VARID_NOT_READY;
		return;
	}
	s->layout = target->layout;
	if (ip >= target->body_start && ip < target->body_end) {
		s->record.flags |= VARID_IN_BODY;
		reg_frame = s->record.regs[s->layout.reg_frame & (VARID_REGS - 1)] + s->layout.reg_frame_bias;
		reg_pc = s->record.regs[s->layout.reg_pc & (VARID_REGS - 1)];
	}
	slot = (void *)VARID_ADDRESS(thread_pointer(task) + s->layout.tls_offset);
	if (bpf_probe_read_user(&base, s->layout.word == 4 ? 4 : sizeof(base), slot) || !base) {
		s->record.flags |= VARID_NO_BASE;
		return;
	}
	result = varid_walk_start(&s->walk, &s->layout, base, tid_inside(task, s->record.tid, target->flags),
				  s->record.regs[REG_SP(s->record.flags)], reg_frame, reg_pc);
	if (result != VARID_WALK_FRAME) {
		s->record.flags |= result == VARID_WALK_TORN ? VARID_TORN : VARID_NO_BASE;
		return;
	}
	if (target->flags & VARID_TARGET_NO_STACK) {
		walk_step(s, 1);
		return;
	}
	if (has_bpf_loop) {
		bpf_loop(VARID_MAX_FRAMES + 1, walk_callback, NULL, 0);
	} else {
		for (int frame = 0; frame <= MAX_FRAMES_UNROLLED; frame++) {
			forget_registers();
			if (walk_step(s, MAX_FRAMES_UNROLLED))
				break;
		}
	}
}

// How much stack an unwinder needs: all of it, or up to the first managed frame that is not
// a quick one (among quick frames there may be others that only an unwinder sees).
static __always_inline __u32 stack_wanted(struct scratch *s, struct varid_target *target)
{
	__u64 len;

	if (target->flags & VARID_TARGET_NO_STACK)
		return 0;
	if (target->flags & VARID_TARGET_FULL_STACK)
		return VARID_STACK_FULL;
	// Not ready: whether it is one of the VM's threads will be known when this is read.
	if (s->record.flags & VARID_NOT_READY)
		return VARID_STACK_REACH;
	if (s->record.flags & VARID_NO_BASE || !(s->layout.flags & VARID_LAYOUT_ON_NATIVE_STACK))
		return VARID_STACK_SLICE;
	if (s->record.flags & VARID_IN_BODY && !(s->record.flags & VARID_TORN))
		return 0;
	if (s->reach <= s->record.stack_addr)
		return VARID_STACK_REACH;
	len = s->reach - s->record.stack_addr;
	if (len > VARID_STACK_REACH) {
		s->record.flags |= VARID_STACK_TRUNCATED;
		return VARID_STACK_REACH;
	}
	return len;
}

static __always_inline int sample(struct bpf_perf_event_data *ctx, const int has_bpf_loop)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	__u64 id = bpf_get_current_pid_tgid();
	struct varid_target *target;
	struct scratch *s;
	__u32 flags = 0, want;
	__u64 size;
	long kernel_bytes;

	if (!id)
		return varid_keep_all;
	target = target_of(task, id >> 32, &flags);
	s = scratch_of_this_cpu();
	if (!target || !s)
		return varid_keep_all;
	count(VARID_COUNT_SAMPLES);

	s->record.time = bpf_ktime_get_ns();
	s->record.pid = id >> 32;
	s->record.tid = id;
	s->record.cpu = bpf_get_smp_processor_id();
	s->record.period = ctx->sample_period;
	s->record.stack_len = 0;
	s->record.frames = 0;
	s->record.kernel = 0;
	s->pos = sizeof(struct varid_record);
	if (CTX_IN_USER(&ctx->regs)) {
		s->record.ip = CTX_IP(&ctx->regs);
		if (CTX_COMPAT(&ctx->regs))
			flags |= VARID_COMPAT;
		COPY_REGS(s->record.regs, &ctx->regs);
	} else {
		struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs(task);

		s->record.ip = CTX_IP(&ctx->regs);
		flags |= VARID_IN_KERNEL;
		struct pt_regs copy = {};

		// A kernel thread has no user registers, only room for them.
		if (BPF_CORE_READ(task, mm))
			bpf_probe_read_kernel(&copy, sizeof(copy), user);
		if (CTX_COMPAT(&copy))
			flags |= VARID_COMPAT;
		COPY_REGS(s->record.regs, &copy);
	}
	s->record.flags = flags;
	s->record.stack_addr = VARID_ADDRESS(s->record.regs[REG_SP(flags)]) - VARID_RED_ZONE;

	s->reach = 0;
	walk(s, task, target, has_bpf_loop);

	if (flags & VARID_IN_KERNEL && s->pos <= OUT_MAX - VARID_MAX_KERNEL * sizeof(__u64)) {
		kernel_bytes = bpf_get_stack(ctx, s->out + s->pos, VARID_MAX_KERNEL * sizeof(__u64), 0);
		if (kernel_bytes > 0) {
			s->record.kernel = kernel_bytes / sizeof(__u64);
			s->pos += s->record.kernel * sizeof(__u64);
		}
	}

	want = stack_wanted(s, target);
	if (has_bpf_loop) {
		bpf_loop(VARID_STACK_FULL / VARID_PAGE + 2, copy_callback, &want, 0);
	} else {
#pragma unroll
		for (int page = 0; page < VARID_STACK_FULL / VARID_PAGE + 2; page++) {
			forget_registers();
			if (copy_page(s, want))
				break;
		}
	}

	size = *(volatile __u32 *)&s->pos;
	// The bound is for the verifier, which must see it on the very register that is passed.
	asm volatile("" : "+r"(size));
	if (size > OUT_MAX)
		size = OUT_MAX;
	asm volatile("" : "+r"(size));
	if (size <= OUT_MAX && bpf_perf_event_output(ctx, &rings, BPF_F_CURRENT_CPU, s->out, size) < 0)
		count(VARID_COUNT_NO_SPACE);
	return varid_keep_all || target->flags & VARID_TARGET_KEEP_RAW ? 1 : 0;
}

SEC("perf_event")
int varid_sample(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 1);
}

SEC("perf_event")
int varid_sample_no_loop(struct bpf_perf_event_data *ctx)
{
	return sample(ctx, 0);
}
