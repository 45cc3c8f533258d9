// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The overflow handler. It runs in an interrupt or an NMI, in the interrupted thread. It reads the
 * registers, managed frames, kernel callchain and the slice of stack that an unwinder needs, and
 * writes them as one record. It never sleeps, locks, allocates or symbolizes. The BPF program (../bpf)
 * does the same.
 */
#include "frames.h"
#include "signal.h"

#define MAX_USER 127 /* callchain entries of a raw sample, as in perf */

size_t varid_scratch_size(void)
{
	return sizeof(struct varid_scratch);
}

/* The reader may write any value to tail. At worst nothing fits, or its own records are overwritten. */
static u64 room_used(const struct varid_ring *ring)
{
	return ring->head - (u64)atomic64_read((atomic64_t *)&ring->control->tail);
}

bool varid_ring_is_filling(const struct varid_ring *ring)
{
	u64 head = atomic64_read((atomic64_t *)&ring->control->head);

	return head - (u64)atomic64_read((atomic64_t *)&ring->control->tail) >= ring->size / 4;
}

/* Appends the contents of scratch->out, if they fit. */
static void commit(struct varid_ring *ring, struct varid_scratch *s, u32 type, u16 misc)
{
	u32 size = ALIGN(s->pos, 8);
	u32 start = ring->head & (ring->size - 1);
	u32 first = min(size, ring->size - start);
	u64 used = room_used(ring);

	if (used > ring->size || size > ring->size - used) {
		ring->no_space++;
		return;
	}
	if (size > s->pos)
		memset(s->out + s->pos, 0, size - s->pos);
	s->header.type = type;
	s->header.misc = misc;
	s->header.size = size;
	smp_mb(); /* the reader's reads precede the overwrite */
	memcpy(ring->data + start, s->out, first);
	if (size > first)
		memcpy(ring->data, s->out + first, size - first);
	smp_wmb(); /* the record precedes the head that includes it */
	ring->head += size;
	atomic64_set((atomic64_t *)&ring->control->head, ring->head);
	if (used < ring->size / 4 && used + size >= ring->size / 4)
		irq_work_queue(&ring->wake);
}

/* Stores this task's kernel stack from the interrupted function on, leaf first. */
static u32 take_kernel_stack(struct varid_scratch *s, u64 ip)
{
	u32 count = varid_kernel_stack(s->kernel, ARRAY_SIZE(s->kernel));
	u32 first = 0, taken;

	while (first < count && s->kernel[first] != ip)
		first++;
	if (first == count)
		return put_word(s, ip);
	for (taken = 0; taken < VARID_MAX_KERNEL && first + taken < count; taken++)
		if (!s->kernel[first + taken] || !put_word(s, s->kernel[first + taken]))
			break;
	return taken;
}

/* Returns the size of the stack from `start` that an unwinder needs. See the BPF program. */
static u32 stack_wanted(struct varid_scratch *s, const struct varid_target *target, u64 start)
{
	struct varid_record *record = &s->record;

	if (target->flags & VARID_TARGET_NO_STACK)
		return 0;
	if (target->flags & VARID_TARGET_FULL_STACK)
		return VARID_STACK_FULL;
	if (record->flags & VARID_NOT_READY)
		return VARID_STACK_REACH;
	if (!(s->layout->flags & VARID_LAYOUT_ON_NATIVE_STACK))
		return VARID_STACK_SLICE;
	if (record->flags & VARID_NO_BASE)
		return VARID_STACK_REACH;
	if (record->flags & VARID_IN_BODY && !(record->flags & VARID_TORN))
		return 0;
	if (s->reach <= start)
		return VARID_STACK_REACH;
	if (s->reach - start > VARID_STACK_REACH) {
		record->flags |= VARID_STACK_TRUNCATED;
		return VARID_STACK_REACH;
	}
	return s->reach - start;
}

/*
 * Copies a slice of stack into the record, page by page, and returns its size. An absent page is a
 * hole; usually nothing was stored yet in that part of a buffer. The slice ends with the last present
 * page. Without `holes`, it ends at the first absent one.
 */
static u32 take_slice(struct varid_scratch *s, u64 start, u32 want, u16 *holes, bool *truncated)
{
	const u32 from = s->pos;
	u32 taken = 0, present = 0;

	while (taken < want) {
		u64 at = start + taken;
		u32 size = min_t(u32, VARID_PAGE - (at & (VARID_PAGE - 1)), want - taken);

		if (size > OUT_MAX - 16 - s->pos) {
			*truncated = true;
			break;
		}
		taken += size;
		if (varid_copy(s->out + s->pos, at, size)) {
			if (!holes)
				break;
			memset(s->out + s->pos, 0, size);
			*holes |= 1u << ((at / VARID_PAGE - start / VARID_PAGE) & 15);
		} else {
			present = taken;
		}
		s->pos += size;
	}
	s->pos = from + present;
	return present;
}

/*
 * VARID_INTERRUPTED: copies the necessary part of the alternate stack, then the interrupted stack.
 * Returns the size that the latter needs.
 */
static u32 take_both_stacks(struct varid_scratch *s, const struct varid_target *target, bool *truncated)
{
	struct varid_record *record = &s->record;
	u64 want = s->signal_stack_end - record->stack_addr;

	if (want > VARID_STACK_REACH) {
		*truncated = true;
		want = VARID_STACK_REACH;
	}
	record->stack_len = take_slice(s, record->stack_addr, want, &record->stack_holes, truncated);
	want = stack_wanted(s, target, record->interrupted_addr);
	record->interrupted_len = take_slice(s, record->interrupted_addr, want, &record->interrupted_holes, truncated);
	return want;
}

#if !defined(CONFIG_ARM)
/* Returns true if a slice contains the two words at an address. */
static bool is_in_slice(u64 at, u64 start, u32 len)
{
	return len >= 2 * sizeof(u64) && at - start <= len - 2 * sizeof(u64);
}

/*
 * Follows frame records outside of the slices: beyond the end of a deep stack, or on another stack.
 * Also copies the stack after the first. See the BPF program.
 */
static void take_links(struct varid_scratch *s)
{
	struct varid_record *record = &s->record;
	const int fp = VARID_FP(record->flags);
	struct varid_frame_link link = { .caller_fp = fp < 0 ? 0 : record->regs[fp & (VARID_REGS - 1)] };
	struct varid_link words;
	u64 first = 0;
	bool truncated;
	u32 followed;

	for (followed = 0; followed < VARID_MAX_FOLLOWED && record->links < VARID_MAX_LINKS; followed++) {
		const u64 at = VARID_ADDRESS(link.caller_fp);

		if (!at || at % sizeof(u64) || at == link.at || varid_copy(&words, at, sizeof(words)))
			break;
		link.at = at;
		link.caller_fp = words.fp;
		link.return_address = words.lr;
		if (is_in_slice(at, record->stack_addr, record->stack_len) ||
		    is_in_slice(at, record->interrupted_addr, record->interrupted_len))
			continue;
		if (!put(s, &link, sizeof(link)))
			break;
		if (!record->links++)
			first = at;
	}
	if (record->links)
		record->beyond = take_slice(s, first, VARID_BEYOND, NULL, &truncated);
}
#else
static void take_links(struct varid_scratch *s)
{
	/* The words of frame records have 4 bytes. */
}
#endif

/* Returns the user registers, or NULL for a kernel thread. */
static const struct pt_regs *sample(struct varid_ring *ring, const struct varid_target *target,
				    const struct pt_regs *regs, u64 period, u32 id, u32 flags)
{
	struct varid_scratch *s = ring->scratch;
	struct varid_record *record = &s->record;
	bool truncated = false;
	u32 want;

	record->time = varid_clock();
	record->pid = current->tgid;
	record->tid = current->pid;
	record->cpu = smp_processor_id();
	record->flags = flags;
	record->period = period;
	record->ip = instruction_pointer((struct pt_regs *)regs);
	record->frames = 0;
	record->kernel = 0;
	if (!user_mode((struct pt_regs *)regs)) {
		record->flags |= VARID_IN_KERNEL;
		/* A kernel thread has no user registers, only space for them. */
		regs = current->mm && !(current->flags & PF_KTHREAD) ? task_pt_regs(current) : NULL;
	}
	if (regs)
		varid_take_registers(record, regs);
	else
		varid_no_registers_from(record, 0);
	record->stack_addr = VARID_ADDRESS(record->regs[VARID_SP(record->flags)]) - VARID_RED_ZONE;
	s->pos = sizeof(s->header) + sizeof(*record);
	s->reach = 0;
	s->tunnel = varid_tunnel_of(current->mm);

	record->stack_len = record->interrupted_len = 0;
	record->allocated = 0;
	record->interrupted_addr = 0;
	record->stack_holes = record->interrupted_holes = 0;
	record->links = record->beyond = 0;
	record->java = record->reserved = 0; /* the unwinder finds HotSpot's frames in the slice */
	if (!(target->flags & VARID_TARGET_NO_STACK) && enter_interrupted(s)) {
		take_frames(s, target);
		leave_interrupted(s);
	} else {
		take_frames(s, target);
	}
	if (record->flags & VARID_IN_KERNEL)
		record->kernel = take_kernel_stack(s, record->ip);
	if (record->flags & VARID_INTERRUPTED) {
		want = take_both_stacks(s, target, &truncated);
	} else {
		want = stack_wanted(s, target, record->stack_addr);
		record->stack_len = take_slice(s, record->stack_addr, want, &record->stack_holes, &truncated);
	}
	/* Otherwise the slice reaches the managed frame that it must reach. */
	if (want == VARID_STACK_FULL || want == VARID_STACK_REACH)
		take_links(s);
	if (truncated)
		record->flags |= VARID_STACK_TRUNCATED;
	commit(ring, s, VARID_MODULE_RECORD, id);
	return regs;
}

/* Writes the user's part of a callchain by frame pointers, as perf does. */
static u32 put_user_chain(struct varid_scratch *s, const struct varid_record *record)
{
	const int fp = VARID_FP(record->flags);
	struct varid_link link = { .fp = fp < 0 ? 0 : record->regs[fp & (VARID_REGS - 1)] };
	u64 at = 0;
	u32 count = 1;

	put_word(s, record->regs[VARID_PC(record->flags)]);
	/* Callers have higher addresses. */
	while (count < MAX_USER && VARID_ADDRESS(link.fp) > at && link.fp % sizeof(long) == 0) {
		at = VARID_ADDRESS(link.fp);
		if (varid_copy(&link, VARID_LINK(at), sizeof(link)) || !put_word(s, varid_return_address(link.lr)))
			break;
		count++;
	}
	return count;
}

/*
 * Writes the same overflow in perf's own format, for comparison by independent programs:
 * PERF_SAMPLE_IDENTIFIER
 * IP
 * TID
 * TIME
 * CPU
 * PERIOD
 * CALLCHAIN
 * REGS_USER and, if requested, STACK_USER. The header of the last record is still in scratch.
 */
static void raw_sample(struct varid_ring *ring, const struct pt_regs *user)
{
	struct varid_scratch *s = ring->scratch;
	const struct varid_record record = s->record;
	const u64 sp = VARID_ADDRESS(record.regs[VARID_SP(record.flags)]);
	const u32 stack = ring->session->raw_stack;
	const bool in_kernel = record.flags & VARID_IN_KERNEL;
	const u64 registers = ring->session->raw_regs;
	u32 bit, count_at, size_at, size = 0;
	bool truncated;
	u64 count = 0;

	s->pos = sizeof(s->header);
	put_word(s, 0);
	put_word(s, record.ip);
	put_word(s, (u64)record.tid << 32 | record.pid);
	put_word(s, record.time);
	put_word(s, record.cpu);
	put_word(s, record.period);
	count_at = s->pos;
	put_word(s, 0);
	if (in_kernel) {
		put_word(s, PERF_CONTEXT_KERNEL);
		count += 1 + take_kernel_stack(s, record.ip);
	}
	if (user && !stack) { /* with the stack, the reader unwinds */
		put_word(s, PERF_CONTEXT_USER);
		count += 1 + put_user_chain(s, &record);
	}
	memcpy(s->out + count_at, &count, sizeof(count));
	if (!user)
		put_word(s, PERF_SAMPLE_REGS_ABI_NONE);
	else if (sizeof(long) == 8 && !(record.flags & VARID_COMPAT))
		put_word(s, PERF_SAMPLE_REGS_ABI_64);
	else
		put_word(s, PERF_SAMPLE_REGS_ABI_32);
	for (bit = 0; user && bit < 64; bit++)
		if (registers >> bit & 1)
			put_word(s, varid_perf_register(user, bit));
	if (stack) {
		size_at = s->pos;
		put_word(s, 0);
		if (user)
			size = take_slice(s, sp, stack, NULL, &truncated) & ~7u;
		s->pos = size_at + 8 + size;
		{
			u64 word = size;

			memcpy(s->out + size_at, &word, sizeof(word));
			if (size)
				put_word(s, word);
		}
	}
	commit(ring, s, PERF_RECORD_SAMPLE, in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
}

/* xorshift: the period must be independent of the program's, but need not be secret. */
static u32 next_random(struct varid_event *counter)
{
	u32 x = counter->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return counter->random = x;
}

/*
 * Returns the period that has ended, and randomizes the next one. A fixed period would resonate with
 * loops of the sampled program. The rate's part of the period may change meanwhile: for a frequency,
 * the kernel adjusts it.
 */
static u64 next_period(struct varid_event *counter, struct perf_event *event, u64 period)
{
	const u64 rate = event->hw.sample_period - counter->jitter;

	if (counter->clock)
		period = counter->armed;
	counter->jitter = 0;
	if (counter->flags & VARID_COUNTER_JITTER && (s64)rate >= 64) {
		const u32 range = min_t(u64, rate >> 3, 0xffffffffu);

		counter->jitter = (s64)((u64)next_random(counter) * range >> 32) - (range >> 1);
		event->hw.sample_period = rate + counter->jitter;
	}
	counter->armed = event->hw.sample_period;
	return period;
}

void varid_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct varid_event *counter = event->overflow_handler_context;
	const u64 period = next_period(counter, event, data->period);
	struct varid_ring *ring = counter->ring;
	const struct varid_target *target;
	const struct pt_regs *user;
	u32 flags = 0;

	if (event->hw.interrupts == (u64)-1) /* MAX_INTERRUPTS: throttled until the next tick */
		ring->throttled++;
	if (!current->tgid || !regs)
		return;
	rcu_read_lock();
	target = varid_target_of_current(&ring->session->targets, &flags);
	if (target) {
		ring->samples++;
		if (ring->busy) {
			ring->no_space++; /* an NMI interrupted the sample of a timer */
		} else {
			ring->busy = true;
			barrier();
			user = sample(ring, target, regs, period, counter->id, flags);
			if (target->flags & VARID_TARGET_KEEP_RAW)
				raw_sample(ring, user);
			barrier();
			ring->busy = false;
		}
	}
	rcu_read_unlock();
}
