/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Captures a record of the current or interrupted thread, if its process is a target. */
#ifndef VARID_BPF_CAPTURE_H
#define VARID_BPF_CAPTURE_H

#include "frames.h"
#include "signal.h"

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
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VARID_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

// The ring of the records. It is not used if each record must precede the kernel's own sample: then both are in the event's ring.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); // the loader sets the size in bytes
} records SEC(".maps");

// Bytes of records on a CPU after which the reader is woken. 0: the ring of the records is not used.
const volatile __u64 varid_wake_bytes = 0;

// The program for all rules, once it is loaded.
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} walkers SEC(".maps");

// The kernel supports tail calls from programs with functions: x86 since 5.10, arm64 since 6.0.
const volatile __u32 varid_tail_calls = 1;

#define MAX_GENERATIONS 5

static __always_inline void count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &which);

	if (n)
		*n += 1;
}

// Returns the target of this process, or of the nearest ancestor that has one, if its children are followed.
static __always_inline struct varid_target *target_of(struct task_struct *task, __u32 tgid, __u32 *flags)
{
	struct varid_target *target = bpf_map_lookup_elem(&targets, &tgid);
	struct task_struct *ancestor = task;
	__u32 zero = 0;

	if (target)
		return target->flags & VARID_TARGET_IGNORE ? NULL : target;
	// The daemon learns of a child with a delay. By then there may be grandchildren.
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
			forget_registers(); // otherwise clang masks the pointer, which the verifier rejects
			return NULL;
		}
		*flags |= VARID_INHERITED;
		return target;
	}
	target = bpf_map_lookup_elem(&everyone, &zero);
	return target && target->flags ? target : NULL;
}

// The slices of stack in a record.
enum slice {
	SLICE_AT_SP,
	SLICE_INTERRUPTED,
};

// Copies one more page of a slice. A page that is not in memory is marked as a hole, and the later ones are copied: most likely, nothing has
// been stored in that part of a buffer yet. Returns 0 to continue.
static __always_inline long copy_page(struct scratch *s, __u32 want, const enum slice slice)
{
	__u32 *taken = slice == SLICE_INTERRUPTED ? &s->record.interrupted_len : &s->record.stack_len;
	__u16 *holes = slice == SLICE_INTERRUPTED ? &s->record.interrupted_holes : &s->record.stack_holes;
	__u64 start = slice == SLICE_INTERRUPTED ? s->record.interrupted_addr : s->record.stack_addr, at = start + *taken;
	__u64 len = VARID_PAGE - (at & (VARID_PAGE - 1)), pos = s->pos;

	if (*taken >= want)
		return 1;
	if (len > want - *taken)
		len = want - *taken;
	asm volatile("" : "+r"(len)); // clang knows that it is at most a page, the verifier of Linux 6.1 does not
	if (pos > OUT_MAX - VARID_PAGE || len > VARID_PAGE) {
		s->record.flags |= VARID_STACK_TRUNCATED;
		return 1;
	}
	// The helper writes zeros when it fails.
	if (bpf_probe_read_user(s->out + pos, len, (const void *)at))
		*holes |= 1u << ((at / VARID_PAGE - start / VARID_PAGE) & 15);
	else
		s->present = *taken + len;
	*taken += len;
	s->pos = pos + len;
	return 0;
}

// Ends a slice after its last page that is in memory: no page follows the last one of a stack.
static __always_inline void end_slice(struct scratch *s, const enum slice slice)
{
	__u32 *taken = slice == SLICE_INTERRUPTED ? &s->record.interrupted_len : &s->record.stack_len;

	s->pos -= *taken - s->present;
	*taken = s->present;
}

static long copy_callback(__u32 index, void *want)
{
	struct scratch *s = own_scratch();

	return s ? copy_page(s, *(__u32 *)want, SLICE_AT_SP) : 1;
}

static long copy_interrupted_callback(__u32 index, void *want)
{
	struct scratch *s = own_scratch();

	return s ? copy_page(s, *(__u32 *)want, SLICE_INTERRUPTED) : 1;
}

// Copies a slice of `want` bytes, which is at most `most`.
static __always_inline void copy_slice(struct scratch *s, __u32 want, const __u32 most, const enum slice slice, const int has_bpf_loop)
{
	if (!want) {
		// Avoids a loop that would do nothing.
		return;
	}
	s->present = 0;
	if (has_bpf_loop) {
		bpf_loop(most / VARID_PAGE + 2, slice == SLICE_INTERRUPTED ? copy_interrupted_callback : copy_callback, &want, 0);
	} else {
#pragma unroll
		for (int page = 0; page < most / VARID_PAGE + 2; page++) {
			forget_registers();
			if (copy_page(s, want, slice))
				break;
		}
	}
	end_slice(s, slice);
}

// Returns how many bytes of the stack from `start` on an unwinder needs: all, or those up to the first managed frame that is not a quick one.
// Between quick frames there may be frames that only an unwinder finds.
static __always_inline __u32 stack_wanted(struct scratch *s, struct varid_target *target, __u64 start)
{
	__u64 len;

	if (target->flags & VARID_TARGET_NO_STACK)
		return 0;
	if (target->flags & VARID_TARGET_FULL_STACK)
		return VARID_STACK_FULL;
	// Only the reader will know whether the thread is one of the VM's.
	if (s->record.flags & (VARID_NOT_READY | VARID_NO_WALK))
		return VARID_STACK_REACH;
	if (!(s->layout.flags & VARID_LAYOUT_ON_NATIVE_STACK))
		return VARID_STACK_SLICE;
	// The thread is not one of the VM's, or it has frames that were not walked and may lie anywhere.
	if (s->record.flags & (VARID_NO_BASE | VARID_LINKED_ONLY))
		return VARID_STACK_REACH;
	if (s->record.flags & VARID_IN_BODY && !(s->record.flags & VARID_TORN))
		return 0;
	if (s->reach <= start)
		return VARID_STACK_REACH;
	len = s->reach - start;
	if (len > VARID_STACK_REACH) {
		s->record.flags |= VARID_STACK_TRUNCATED;
		return VARID_STACK_REACH;
	}
	return len;
}

// VARID_INTERRUPTED: returns how many bytes of the alternate stack an unwinder needs: the handler's frames, and what the kernel has saved.
static __always_inline __u32 signal_stack_wanted(struct scratch *s)
{
	__u64 len = s->signal_stack_end - s->record.stack_addr;

	if (len > VARID_STACK_REACH) {
		s->record.flags |= VARID_STACK_TRUNCATED;
		return VARID_STACK_REACH;
	}
	return len;
}

// Reads the link at s->link.at from a slice of the record. Returns false if the slice does not contain it. behind: offset of the slice from
// the first one.
static __always_inline bool link_in_slice(struct scratch *s, __u64 start, __u64 len, __u64 behind)
{
	__u64 offset = s->link.at - start, pos = s->slices + behind + offset;

	if (len < 2 * sizeof(__u64) || offset > len - 2 * sizeof(__u64))
		return false;
	asm volatile("" : "+r"(pos));
	if (pos > OUT_MAX)
		return false;
	__builtin_memcpy(&s->link.caller_fp, s->out + pos, 2 * sizeof(__u64));
	return true;
}

// Follows one more frame pointer. Returns 0 to continue.
static __always_inline long follow_link(struct scratch *s)
{
	__u64 pos = s->pos;

	s->link.at = s->fp;
	if (!s->fp || s->fp & (sizeof(__u64) - 1))
		return 1;
	if (s->link.at == s->kept_link ||
	    (!link_in_slice(s, s->record.stack_addr, s->record.stack_len, 0) &&
	     !link_in_slice(s, s->record.interrupted_addr, s->record.interrupted_len, s->record.stack_len))) {
		if (s->record.links >= VARID_MAX_LINKS || pos > OUT_MAX - sizeof(s->link) ||
		    bpf_probe_read_user(&s->link.caller_fp, 2 * sizeof(__u64), (const void *)s->fp))
			return 1;
		// The verifier must see the bound on the register that is added: 6.1 does not track it for a copy on the stack.
		asm volatile("" : "+r"(pos));
		__builtin_memcpy(s->out + (pos & 0xffff), &s->link, sizeof(s->link));
		s->pos = pos + sizeof(s->link);
		if (!s->record.links++)
			s->beyond = s->link.at;
	}
	s->fp = VARID_ADDRESS(s->link.caller_fp);
	return s->fp == s->link.at;
}

static long follow_callback(__u32 index, void *unused)
{
	struct scratch *s = own_scratch();

	return s ? follow_link(s) : 1;
}

// Copies more of the stack, starting at the first link, up to the end of a page.
static __always_inline bool copy_beyond(struct scratch *s)
{
	__u64 at = s->beyond + s->record.beyond, len = VARID_PAGE - (at & (VARID_PAGE - 1)), pos = s->pos;

	if (len > VARID_BEYOND - s->record.beyond)
		len = VARID_BEYOND - s->record.beyond;
	asm volatile("" : "+r"(len), "+r"(pos));
	if (pos > OUT_MAX - VARID_BEYOND || len > VARID_BEYOND ||
	    bpf_probe_read_user(s->out + (pos & 0xffff), len, (const void *)at))
		return false;
	s->record.beyond += len;
	s->pos = pos + len;
	return true;
}

// Adds the links outside of the slices to which frame pointers lead: beyond the end of a deep stack, or on another stack. Callers without a
// frame pointer lie after the first link. A register that is no frame pointer leads nowhere, or to words that no unwinder reads.
static __always_inline void take_links(struct scratch *s, const int has_bpf_loop)
{
	if (s->record.flags & VARID_COMPAT)
		return;
	s->fp = VARID_ADDRESS(s->record.regs[REG_FP]);
	s->kept_link = 0;
	// Compiled Java code keeps no frame pointers, but its callers do. The slice may end in their frames.
	if (s->record.java && s->java.entry) {
		s->fp = s->java.entry;
		if ((s->record.stack_len >= VARID_STACK_REACH || s->record.flags & VARID_STACK_TRUNCATED) &&
		    s->fp + VARID_BEYOND > s->record.stack_addr + s->record.stack_len)
			s->kept_link = s->fp;
	}
	if (has_bpf_loop) {
		bpf_loop(VARID_MAX_FOLLOWED, follow_callback, NULL, 0);
	} else {
		for (int link = 0; link < VARID_MAX_LINKS; link++) {
			forget_registers();
			if (follow_link(s))
				break;
		}
	}
	if (s->record.links && copy_beyond(s) && s->record.beyond < VARID_BEYOND)
		copy_beyond(s);
}

// Writes the record to its own ring. Returns 0 if there was space.
static __always_inline long output_record(struct scratch *s)
{
	__u64 size = *(volatile __u64 *)&s->pos;
	__u64 flags = BPF_RB_NO_WAKEUP;

	// The verifier must see the bound on the register that is passed.
	asm volatile("" : "+r"(size));
	if (size > OUT_MAX)
		size = OUT_MAX;
	asm volatile("" : "+r"(size));
	if (size > OUT_MAX)
		return -1;
	s->unsaid += size;
	if (s->unsaid >= varid_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&records, s->out, size, flags))
		return -1;
	if (s->unsaid >= varid_wake_bytes)
		s->unsaid = 0;
	return 0;
}

// Reads the registers with which a thread that is now in the kernel left user code.
static __always_inline __u32 take_user_registers(struct scratch *s, struct task_struct *task)
{
	struct pt_regs *user = (struct pt_regs *)bpf_task_pt_regs(task);
	struct pt_regs *copy = (struct pt_regs *)s->copy;
	__u32 flags = VARID_IN_KERNEL;

	// A kernel thread has no user registers, only space for them.
	if (!task->mm || bpf_probe_read_kernel(copy, sizeof(*copy), user))
		__builtin_memset(copy, 0, sizeof(*copy));
	if (CTX_COMPAT(copy))
		flags |= VARID_COMPAT;
	COPY_REGS(s->record.regs, copy);
	return flags;
}

// Starts the record of a task. The caller adds the registers.
static __always_inline void begin_record(struct scratch *s, __u64 id, __u64 period)
{
	s->record.time = bpf_ktime_get_ns();
	s->record.pid = id >> 32;
	s->record.tid = id;
	s->record.cpu = bpf_get_smp_processor_id();
	s->record.period = period;
	s->record.allocated = 0;
	s->record.stack_len = 0;
	s->record.interrupted_addr = 0;
	s->record.interrupted_len = 0;
	s->record.stack_holes = 0;
	s->record.interrupted_holes = 0;
	s->record.links = 0;
	s->record.beyond = 0;
	s->record.java = 0;
	s->record.reserved = 0;
	s->record.frames = 0;
	s->record.kernel = 0;
	s->pos = sizeof(struct varid_record);
}

// Adds what the registers lead to: managed frames, the kernel's callchain, the slice of stack, and the frame links outside of it.
static __always_inline void take_stacks(void *ctx, struct scratch *s, struct task_struct *task,
					struct varid_target *target, const int has_bpf_loop, const __u32 rules)
{
	const __u32 flags = s->record.flags;
	const __u64 sp = VARID_ADDRESS(s->record.regs[REG_SP(flags)]);
	long kernel_bytes;
	__u32 want;

	s->record.stack_addr = sp - VARID_RED_ZONE;
	s->reach = 0;
	if (varid_on_signal_stack(sp, task->sas_ss_sp, task->sas_ss_size) &&
	    !(flags & VARID_COMPAT || target->flags & VARID_TARGET_NO_STACK)) {
		if (has_bpf_loop)
			enter_interrupted(s, task->sas_ss_sp, task->sas_ss_size);
		else
			enter_interrupted_no_loop(s, task->sas_ss_sp, task->sas_ss_size);
	}
	walk(s, task, target, has_bpf_loop, rules);
	if (s->record.flags & VARID_INTERRUPTED)
		leave_interrupted(s);

	if (flags & VARID_IN_KERNEL && s->pos <= OUT_MAX - VARID_MAX_KERNEL * sizeof(__u64)) {
		kernel_bytes = bpf_get_stack(ctx, s->out + s->pos, VARID_MAX_KERNEL * sizeof(__u64), 0);
		if (kernel_bytes > 0) {
			s->record.kernel = kernel_bytes / sizeof(__u64);
			s->pos += s->record.kernel * sizeof(__u64);
		}
	}

	s->slices = s->pos;
	if (s->record.flags & VARID_INTERRUPTED) {
		copy_slice(s, signal_stack_wanted(s), VARID_STACK_REACH, SLICE_AT_SP, has_bpf_loop);
		want = stack_wanted(s, target, s->record.interrupted_addr);
		copy_slice(s, want, VARID_STACK_FULL, SLICE_INTERRUPTED, has_bpf_loop);
	} else {
		want = stack_wanted(s, target, s->record.stack_addr);
		copy_slice(s, want, VARID_STACK_FULL, SLICE_AT_SP, has_bpf_loop);
	}
	// Otherwise the slice ends at the managed frame that the unwinder has to reach.
	if (want == VARID_STACK_FULL || want == VARID_STACK_REACH)
		take_links(s, has_bpf_loop);
}

#endif
