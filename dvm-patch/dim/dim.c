/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes and updates the tunnel.
 *
 * All published data exists twice: in the image, private memory that a fork copies, and in the shared
 * mapping that varid reads. An event changes the image, and then the mapping between two increments of
 * the generation. Each entry of the image is completed by a single store to one field, so that a child
 * that is forked in between has a consistent table.
 */
#include "dim.h"
#include "inside.h"
#include "syscall.h"

#define MAX_RANGES 256
#define MAX_CODES 1024
#define MAX_THREADS 1024
#define MAX_TRACES 32768

struct image {
	struct varid_tunnel head;
	struct varid_range ranges[MAX_RANGES];
	struct varid_code codes[MAX_CODES];
	struct varid_thread threads[MAX_THREADS];
	struct varid_trace traces[MAX_TRACES];
};

static struct {
	struct image *image;  /* null: off */
	struct image *shared; /* null: this process has no tunnel (any more) */
	varid_u32 pid;        /* the process that shared belongs to */
	void (*forked)(int has_tunnel); /* called in a forked child; null: nothing */
	void (*ended)(void);            /* called when dim ends */
	int lock;
	int traces_full; /* set until all traces are discarded: then none is listed */
} dim;

#ifndef DIM_NO_SHADOW
DIM_TLS struct varid_shadow *dim_shadow;
#endif

static void take_lock(void)
{
	dim_take(&dim.lock);
}

static void release_lock(void)
{
	__sync_lock_release(&dim.lock);
}

/* Maps a new file for the tunnel. It is not a tunnel yet. */
static int share(varid_u32 pid)
{
	dim.shared = dim_share(VARID_TUNNEL_NAME, sizeof(*dim.shared), 1, 0);
	dim.pid = pid;
	return dim.shared != 0;
}

/* Copies the image to it. The magic is written last, because it marks a valid tunnel. */
static void publish(void)
{
	struct image *image = dim.image;
	struct image *shared = dim.shared;

	image->head.pid = dim.pid;
	image->head.time = dim_now();
	image->head.generation = 0;
	dim_copy(&shared->head.version, &image->head.version,
	     sizeof(image->head) - __builtin_offsetof(struct varid_tunnel, version));
	dim_copy(shared->ranges, image->ranges, sizeof(image->ranges[0]) * image->head.ranges.count);
	dim_copy(shared->codes, image->codes, sizeof(image->codes[0]) * image->head.codes.count);
	dim_copy(shared->threads, image->threads, sizeof(image->threads[0]) * image->head.threads.count);
	dim_copy(shared->traces, image->traces, sizeof(image->traces[0]) * image->head.traces.count);
	__sync_synchronize();
	dim_copy(shared->head.magic, image->head.magic, sizeof(image->head.magic));
}

/* Copies changed data of the image to the mapping. */
static void update(const void *entry, unsigned long size)
{
	struct image *image = dim.image;
	struct image *shared = dim.shared;
	unsigned long at = (unsigned long)((const char *)entry - (const char *)image);
	volatile varid_u32 *generation = &shared->head.generation;

	*generation = *generation + 1;
	__sync_synchronize();
	dim_copy((char *)shared + at, entry, size);
	shared->head.ranges.count = image->head.ranges.count;
	shared->head.codes.count = image->head.codes.count;
	shared->head.threads.count = image->head.threads.count;
	shared->head.traces.count = image->head.traces.count;
	__sync_synchronize();
	*generation = *generation + 1;
}

/* Starts an event. Returns 1 with the lock held, or 0 if dim is off. */
static int begin(void)
{
	if (!dim.image)
		return 0;
	if (dim.pid != dim_process())
		dim_after_fork();
	take_lock();
	if (dim.image && dim.shared)
		return 1;
	release_lock();
	return 0;
}

void dim_tell_file(int calls, const struct varid_file *file)
{
	struct varid_tunnel *head;

	if (!begin())
		return;
	head = &dim.image->head;
	*(calls ? &head->calls : &head->control) = *file;
	update(calls ? &head->calls : &head->control, sizeof(*file));
	release_lock();
}

void dim_follow(void (*forked)(int has_tunnel), void (*ended)(void))
{
	dim.forked = forked;
	dim.ended = ended;
}

void dim_tell_tactic(varid_u32 tactic)
{
	if (!begin())
		return;
	dim.image->head.tactic = tactic;
	update(&dim.image->head.tactic, sizeof(tactic));
	release_lock();
}

static void describe(struct varid_part *part, const void *table, const void *image, varid_u32 entry_size,
		     varid_u32 capacity)
{
	part->offset = (varid_u32)((const char *)table - (const char *)image);
	part->entry_size = entry_size;
	part->capacity = capacity;
}

int dim_init(varid_u32 vm, const struct varid_layout *layout, const struct varid_range *ranges,
	     varid_u32 range_count, const char *folder)
{
	struct image *image;

	if (dim.image || range_count > MAX_RANGES)
		return 0;
	dim_files_in(folder);
	image = dim_map(sizeof(*image), DIM_PROT_READ | DIM_PROT_WRITE,
		    DIM_MAP_PRIVATE | DIM_MAP_ANONYMOUS | DIM_MAP_NORESERVE, -1);
	if (!image)
		return 0;
	dim_copy(image->head.magic, VARID_TUNNEL_MAGIC, sizeof(image->head.magic));
	image->head.version = VARID_TUNNEL_VERSION;
	image->head.header_size = sizeof(image->head);
	image->head.size = sizeof(*image);
	image->head.vm = vm;
	dim_copy(&image->head.layout, layout, sizeof(*layout));
#ifndef DIM_NO_SHADOW
	if (layout->rules[0].kind == VARID_RULE_SHADOW)
		image->head.layout.tls_offset = (varid_s64)((long)&dim_shadow - (long)dim_thread_pointer());
#endif
	dim_copy(image->ranges, ranges, range_count * sizeof(*ranges));
	describe(&image->head.ranges, image->ranges, image, sizeof(image->ranges[0]), MAX_RANGES);
	describe(&image->head.codes, image->codes, image, sizeof(image->codes[0]), MAX_CODES);
	describe(&image->head.threads, image->threads, image, sizeof(image->threads[0]), MAX_THREADS);
	describe(&image->head.traces, image->traces, image, sizeof(image->traces[0]), MAX_TRACES);
	image->head.ranges.count = range_count;
	dim.image = image;
	if (share(dim_process())) {
		publish();
		return 1;
	}
	dim.image = 0;
	dim_unmap(image, sizeof(*image));
	return 0;
}

void dim_dex(varid_u64 start, varid_u64 size, const char *location, varid_u32 flags)
{
	dim_code(VARID_CODE_DEX, start, size, location, flags);
}

void dim_code(varid_u32 kind, varid_u64 start, varid_u64 size, const char *location, varid_u32 flags)
{
	struct varid_code *code, *free = 0;
	varid_u32 i, count;

	if (!size || size > ~start || !begin())
		return;
	count = dim.image->head.codes.count;
	for (i = 0; i < count; i++) {
		code = &dim.image->codes[i];
		if (code->start == start && code->size == size)
			goto out;
		if (code->size && code->start < start + size && start < code->start + code->size) {
			code->size = 0; /* unmapped without a report: replaced by the new one */
			update(code, sizeof(*code));
		}
		if (!code->size && !free)
			free = code;
	}
	if (!free && count == MAX_CODES)
		goto out;
	code = free ? free : &dim.image->codes[count];
	code->start = start;
	code->time = dim_now();
	code->kind = kind;
	code->flags = flags;
	for (i = 0; i < VARID_CODE_LOCATION - 1 && location && location[i]; i++)
		code->location[i] = (varid_u8)location[i];
	for (; i < VARID_CODE_LOCATION; i++)
		((volatile varid_u8 *)code->location)[i] = 0;
	__sync_synchronize();
	code->size = size;
	if (!free)
		dim.image->head.codes.count = count + 1;
	update(code, sizeof(*code));
out:
	release_lock();
}

void dim_dex_gone(varid_u64 start)
{
	varid_u32 i;

	if (!begin())
		return;
	for (i = 0; i < dim.image->head.codes.count; i++) {
		struct varid_code *code = &dim.image->codes[i];

		if (code->size && code->start == start) {
			code->size = 0;
			update(code, sizeof(*code));
			break;
		}
	}
	release_lock();
}

void dim_traces(varid_u64 start, varid_u64 end)
{
	struct varid_range *range;
	varid_u32 i, count;

	if (start >= end || !begin())
		return;
	count = dim.image->head.ranges.count;
	for (i = 0; i < count; i++) {
		range = &dim.image->ranges[i];
		if (range->start < end && start < range->end)
			goto out; /* already published */
	}
	if (count == MAX_RANGES)
		goto out;
	range = &dim.image->ranges[count];
	range->start = start;
	range->end = end;
	range->kind = VARID_RANGE_TRACES;
	__sync_synchronize();
	dim.image->head.ranges.count = count + 1;
	update(range, sizeof(*range));
out:
	release_lock();
}

void dim_trace(varid_u64 start, varid_u64 pc)
{
	struct varid_trace *trace;
	varid_u32 count;

	if (!pc || !begin())
		return;
	count = dim.image->head.traces.count;
	if (count == MAX_TRACES) {
		/* Discards all: the last listed trace would seem to extend over all that follow. */
		dim.traces_full = 1;
		dim.image->head.traces.count = 0;
		update(&dim.image->head.traces, 0);
	} else if (!dim.traces_full) {
		trace = &dim.image->traces[count];
		trace->start = start;
		trace->pc = pc;
		__sync_synchronize();
		dim.image->head.traces.count = count + 1;
		update(trace, sizeof(*trace));
	}
	release_lock();
}

void dim_traces_gone(void)
{
	if (!begin())
		return;
	dim.traces_full = 0;
	dim.image->head.traces.count = 0;
	update(&dim.image->head.traces, 0);
	release_lock();
}

static varid_u32 thread(void)
{
	return (varid_u32)dim_syscall(SYS_GETTID, 0, 0, 0, 0, 0, 0);
}

/*
 * Lists the thread, for readers that cannot read its thread pointer. If there is no space, it is left
 * out.
 */
static void note_thread(varid_u32 tid, varid_u64 base)
{
	varid_u32 count = dim.image->head.threads.count;
	struct varid_thread *slot;
	varid_u32 i;

	for (i = 0; i < count && dim.image->threads[i].tid; i++)
		;
	if (i == MAX_THREADS)
		return;
	slot = &dim.image->threads[i];
	slot->base = base;
	__sync_synchronize();
	slot->tid = tid;
	if (i == count)
		dim.image->head.threads.count = count + 1;
	update(slot, sizeof(*slot));
}

static void forget_thread(varid_u32 i)
{
	dim.image->threads[i].tid = 0;
	update(&dim.image->threads[i], sizeof(dim.image->threads[i]));
}

void dim_thread_base(varid_u64 base)
{
	varid_u32 tid, i;

	if (!base || !begin())
		return;
	tid = thread();
	for (i = 0; i < dim.image->head.threads.count; i++) {
		if (!dim.image->threads[i].tid || dim.image->threads[i].base != base)
			continue;
		if (dim.image->threads[i].tid == tid)
			goto out;
		forget_thread(i); /* ended without a report: its memory is the new thread's */
	}
	note_thread(tid, base);
out:
	release_lock();
}

void dim_thread_base_gone(varid_u64 base)
{
	varid_u32 i;

	if (!base || !begin())
		return;
	for (i = 0; i < dim.image->head.threads.count; i++) {
		if (dim.image->threads[i].tid && dim.image->threads[i].base == base)
			forget_thread(i);
	}
	release_lock();
}

#ifndef DIM_NO_SHADOW
static unsigned long shadow_size(varid_u32 records)
{
	return sizeof(struct varid_shadow) + (unsigned long)records * sizeof(struct varid_shadow_record);
}

void dim_thread_start(varid_u32 records)
{
	struct varid_shadow *shadow;

	if (dim_shadow || !records || records > 0x1000000 || !begin())
		return;
	shadow = dim_map(shadow_size(records), DIM_PROT_READ | DIM_PROT_WRITE,
		     DIM_MAP_PRIVATE | DIM_MAP_ANONYMOUS | DIM_MAP_NORESERVE, -1);
	if (shadow) {
		shadow->tid = thread();
		shadow->capacity = records;
		note_thread(shadow->tid, (unsigned long)shadow);
		DIM_BARRIER();
		dim_shadow = shadow;
	}
	release_lock();
}

void dim_thread_exit(void)
{
	struct varid_shadow *shadow = dim_shadow;

	if (!shadow)
		return;
	dim_shadow = 0;
	DIM_BARRIER();
	dim_thread_base_gone((unsigned long)shadow);
	dim_unmap(shadow, shadow_size(shadow->capacity));
}
#endif

/* The child's only thread keeps its shadow stack with its new tid. The other stacks are unmapped. */
static void adopt_threads(void)
{
	varid_u32 count = dim.image->head.threads.count;
	varid_u32 i;

	for (i = 0; i < count; i++) {
#ifndef DIM_NO_SHADOW
		struct varid_shadow *shadow = (struct varid_shadow *)(unsigned long)dim.image->threads[i].base;

		if (dim.image->head.layout.rules[0].kind == VARID_RULE_SHADOW && dim.image->threads[i].tid && shadow != dim_shadow)
			dim_unmap(shadow, shadow_size(shadow->capacity));
#endif
		dim.image->threads[i].tid = 0;
	}
	dim.image->head.threads.count = 0;
#ifndef DIM_NO_SHADOW
	if (dim_shadow) {
		dim_shadow->tid = thread();
		dim.image->threads[0].base = (unsigned long)dim_shadow;
		dim.image->threads[0].tid = dim_shadow->tid;
		dim.image->head.threads.count = 1;
	}
#endif
}

void dim_after_fork(void)
{
	varid_u32 pid;
	int has_tunnel;

	if (!dim.image)
		return;
	pid = dim_process();
	if (dim.pid == pid)
		return;
	dim.lock = 0; /* its holder does not exist in the child */
	if (dim.shared)
		dim_unmap(dim.shared, sizeof(*dim.shared));
	adopt_threads();
	dim.image->head.tactic = VARID_LOAD_FROM_DEX;
	dim.image->head.control.address = dim.image->head.calls.address = 0;
	has_tunnel = share(pid);
	/*
	 * Before publishing, so that the tunnel contains the places of the child's files from the start.
	 */
	if (dim.forked)
		dim.forked(has_tunnel);
	if (has_tunnel)
		publish();
}

void dim_shutdown(void)
{
	struct image *image = dim.image;

	if (dim.ended)
		dim.ended();
	if (!begin())
		return;
	dim_unmap(dim.shared, sizeof(*dim.shared));
	dim.shared = 0;
	dim.image = 0;
	release_lock();
	dim_unmap(image, sizeof(*image));
}
