/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How is the tunnel made and kept?
 *
 * Everything published is kept twice: in the image, private memory that a fork copies,
 * and in the shared mapping that varid reads. An event changes the image, then the
 * mapping between two steps of the generation. Entries of the image are completed by
 * one store of one field, so that a child forked in the middle finds a whole table.
 */
#include "dim.h"
#include "syscall.h"

#define MAX_RANGES 256
#define MAX_CODES 1024
#define MAX_THREADS 1024
#define PATH_SIZE 256

struct image {
	struct varid_tunnel head;
	struct varid_range ranges[MAX_RANGES];
	struct varid_code codes[MAX_CODES];
	struct varid_thread threads[MAX_THREADS];
};

static struct {
	struct image *image;  /* null: off */
	struct image *shared; /* null: this process has no tunnel (any more) */
	varid_u32 pid;        /* whose shared is */
	int lock;
	char folder[PATH_SIZE];
} dim;

#ifndef DIM_NO_SHADOW
DIM_TLS struct varid_shadow *dim_shadow;
#endif

/* volatile, so that no compiler makes a call of memcpy from it. */
static void copy(void *to, const void *from, unsigned long size)
{
	volatile unsigned char *t = to;
	const unsigned char *f = from;

	while (size--)
		*t++ = *f++;
}

static void *map(unsigned long size, int prot, int flags, int fd)
{
	long at = dim_syscall(SYS_MMAP, 0, (long)size, prot, flags, fd, 0);

	return (unsigned long)at > -(unsigned long)DIM_MAX_ERRNO - 1 ? 0 : (void *)at;
}

static void unmap(void *at, unsigned long size)
{
	dim_syscall(SYS_MUNMAP, (long)at, (long)size, 0, 0, 0, 0);
}

static varid_u32 process(void)
{
	return (varid_u32)dim_syscall(SYS_GETPID, 0, 0, 0, 0, 0, 0);
}

static varid_u64 now(void)
{
	long t[2] = { 0, 0 };

	dim_syscall(SYS_CLOCK_GETTIME, DIM_CLOCK_MONOTONIC, (long)t, 0, 0, 0, 0);
	return (varid_u64)t[0] * 1000000000u + (varid_u64)t[1];
}

static void take_lock(void)
{
	while (__sync_lock_test_and_set(&dim.lock, 1))
		dim_syscall(SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
}

static void release_lock(void)
{
	__sync_lock_release(&dim.lock);
}

/* A descriptor of a file of no name in folder; below zero: none. */
static long open_file(varid_u32 pid)
{
	static const char name[] = "/" VARID_TUNNEL_NAME ".";
	char path[PATH_SIZE + sizeof(name) + 10];
	unsigned long n = 0;
	varid_u32 digit = 1000000000;
	long fd;

	while (n < PATH_SIZE && dim.folder[n]) {
		path[n] = dim.folder[n];
		n++;
	}
	if (!n || n == PATH_SIZE)
		return -1;
	copy(path + n, name, sizeof(name) - 1);
	n += sizeof(name) - 1;
	for (; digit; digit /= 10)
		path[n++] = (char)('0' + pid / digit % 10);
	path[n] = 0;
	fd = dim_syscall(SYS_OPENAT, DIM_CWD, (long)path,
			 DIM_O_RDWR | DIM_O_CREAT | DIM_O_EXCL | DIM_O_NOFOLLOW | DIM_O_CLOEXEC, 0600, 0, 0);
	if (fd >= 0)
		dim_syscall(SYS_UNLINKAT, DIM_CWD, (long)path, 0, 0, 0, 0);
	return fd;
}

/* A descriptor for the tunnel, sized and, where that is possible, sealed. */
static long open_tunnel(varid_u32 pid)
{
	int flags = DIM_MFD_CLOEXEC | DIM_MFD_ALLOW_SEALING;
	long fd = dim_syscall(SYS_MEMFD_CREATE, (long)VARID_TUNNEL_NAME, flags | DIM_MFD_NOEXEC_SEAL, 0, 0, 0, 0);

	if (fd < 0)
		fd = dim_syscall(SYS_MEMFD_CREATE, (long)VARID_TUNNEL_NAME, flags, 0, 0, 0, 0);
	if (fd < 0)
		fd = open_file(pid);
	if (fd < 0)
		return fd;
	if (dim_syscall(SYS_FTRUNCATE, fd, sizeof(struct image), 0, 0, 0, 0) < 0) {
		dim_syscall(SYS_CLOSE, fd, 0, 0, 0, 0, 0);
		return -1;
	}
	dim_syscall(SYS_FCNTL, fd, DIM_F_ADD_SEALS, DIM_SEALS, 0, 0, 0);
	return fd;
}

/* Maps a new tunnel and copies the image to it. The magic comes last: no magic, no tunnel. */
static int publish(varid_u32 pid)
{
	struct image *image = dim.image;
	struct image *shared;
	long fd = open_tunnel(pid);

	if (fd < 0)
		return 0;
	shared = map(sizeof(*shared), DIM_PROT_READ | DIM_PROT_WRITE, DIM_MAP_SHARED, (int)fd);
	dim_syscall(SYS_CLOSE, fd, 0, 0, 0, 0, 0);
	if (!shared)
		return 0;
	image->head.pid = pid;
	image->head.time = now();
	image->head.generation = 0;
	copy(&shared->head.version, &image->head.version,
	     sizeof(image->head) - __builtin_offsetof(struct varid_tunnel, version));
	copy(shared->ranges, image->ranges, sizeof(image->ranges[0]) * image->head.ranges.count);
	copy(shared->codes, image->codes, sizeof(image->codes[0]) * image->head.codes.count);
	copy(shared->threads, image->threads, sizeof(image->threads[0]) * image->head.threads.count);
	__sync_synchronize();
	copy(shared->head.magic, image->head.magic, sizeof(image->head.magic));
	dim.shared = shared;
	dim.pid = pid;
	return 1;
}

/* Copies what an event changed in the image to the mapping. */
static void update(const void *entry, unsigned long size)
{
	struct image *image = dim.image;
	struct image *shared = dim.shared;
	unsigned long at = (unsigned long)((const char *)entry - (const char *)image);
	volatile varid_u32 *generation = &shared->head.generation;

	*generation = *generation + 1;
	__sync_synchronize();
	copy((char *)shared + at, entry, size);
	shared->head.codes.count = image->head.codes.count;
	shared->head.threads.count = image->head.threads.count;
	__sync_synchronize();
	*generation = *generation + 1;
}

/* Begins an event: 1 with the lock held, 0 if dim is off. */
static int begin(void)
{
	if (!dim.image)
		return 0;
	if (dim.pid != process())
		dim_after_fork();
	take_lock();
	if (dim.image && dim.shared)
		return 1;
	release_lock();
	return 0;
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
	unsigned long n;

	if (dim.image || range_count > MAX_RANGES)
		return 0;
	for (n = 0; folder && folder[n] && n < PATH_SIZE - 1; n++)
		dim.folder[n] = folder[n];
	image = map(sizeof(*image), DIM_PROT_READ | DIM_PROT_WRITE,
		    DIM_MAP_PRIVATE | DIM_MAP_ANONYMOUS | DIM_MAP_NORESERVE, -1);
	if (!image)
		return 0;
	copy(image->head.magic, VARID_TUNNEL_MAGIC, sizeof(image->head.magic));
	image->head.version = VARID_TUNNEL_VERSION;
	image->head.header_size = sizeof(image->head);
	image->head.size = sizeof(*image);
	image->head.vm = vm;
	copy(&image->head.layout, layout, sizeof(*layout));
#ifndef DIM_NO_SHADOW
	if (layout->kind == VARID_LAYOUT_SHADOW)
		image->head.layout.tls_offset = (varid_s64)((long)&dim_shadow - (long)dim_thread_pointer());
#endif
	copy(image->ranges, ranges, range_count * sizeof(*ranges));
	describe(&image->head.ranges, image->ranges, image, sizeof(image->ranges[0]), MAX_RANGES);
	describe(&image->head.codes, image->codes, image, sizeof(image->codes[0]), MAX_CODES);
	describe(&image->head.threads, image->threads, image, sizeof(image->threads[0]), MAX_THREADS);
	image->head.ranges.count = range_count;
	dim.image = image;
	if (publish(process()))
		return 1;
	dim.image = 0;
	unmap(image, sizeof(*image));
	return 0;
}

void dim_dex(varid_u64 start, varid_u64 size, const char *location, varid_u32 flags)
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
			code->size = 0; /* unmapped without a word: this one took its place */
			update(code, sizeof(*code));
		}
		if (!code->size && !free)
			free = code;
	}
	if (!free && count == MAX_CODES)
		goto out;
	code = free ? free : &dim.image->codes[count];
	code->start = start;
	code->time = now();
	code->kind = VARID_CODE_DEX;
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

#ifndef DIM_NO_SHADOW
static varid_u32 thread(void)
{
	return (varid_u32)dim_syscall(SYS_GETTID, 0, 0, 0, 0, 0, 0);
}

static unsigned long shadow_size(varid_u32 records)
{
	return sizeof(struct varid_shadow) + (unsigned long)records * sizeof(struct varid_shadow_record);
}

/* Notes the thread for readers that cannot see its thread pointer; if there is no room, they miss it. */
static void note_thread(varid_u32 tid, const void *base)
{
	varid_u32 count = dim.image->head.threads.count;
	struct varid_thread *slot;
	varid_u32 i;

	for (i = 0; i < count && dim.image->threads[i].tid; i++)
		;
	if (i == MAX_THREADS)
		return;
	slot = &dim.image->threads[i];
	slot->base = (unsigned long)base;
	__sync_synchronize();
	slot->tid = tid;
	if (i == count)
		dim.image->head.threads.count = count + 1;
	update(slot, sizeof(*slot));
}

void dim_thread_start(varid_u32 records)
{
	struct varid_shadow *shadow;

	if (dim_shadow || !records || records > 0x1000000 || !begin())
		return;
	shadow = map(shadow_size(records), DIM_PROT_READ | DIM_PROT_WRITE,
		     DIM_MAP_PRIVATE | DIM_MAP_ANONYMOUS | DIM_MAP_NORESERVE, -1);
	if (shadow) {
		shadow->tid = thread();
		shadow->capacity = records;
		note_thread(shadow->tid, shadow);
		DIM_BARRIER();
		dim_shadow = shadow;
	}
	release_lock();
}

void dim_thread_exit(void)
{
	struct varid_shadow *shadow = dim_shadow;
	varid_u32 i;

	if (!shadow)
		return;
	dim_shadow = 0;
	DIM_BARRIER();
	if (begin()) {
		for (i = 0; i < dim.image->head.threads.count; i++) {
			struct varid_thread *slot = &dim.image->threads[i];

			if (slot->tid == shadow->tid && slot->base == (unsigned long)shadow) {
				slot->tid = 0;
				update(slot, sizeof(*slot));
				break;
			}
		}
		release_lock();
	}
	unmap(shadow, shadow_size(shadow->capacity));
}
#endif

/* The child's only thread keeps its shadow stack under its new name; the others' go. */
static void adopt_threads(void)
{
	varid_u32 count = dim.image->head.threads.count;
	varid_u32 i;

	for (i = 0; i < count; i++) {
#ifndef DIM_NO_SHADOW
		struct varid_shadow *shadow = (struct varid_shadow *)(unsigned long)dim.image->threads[i].base;

		if (dim.image->threads[i].tid && shadow != dim_shadow)
			unmap(shadow, shadow_size(shadow->capacity));
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

	if (!dim.image)
		return;
	pid = process();
	if (dim.pid == pid)
		return;
	dim.lock = 0; /* whoever held it did not come along */
	if (dim.shared)
		unmap(dim.shared, sizeof(*dim.shared));
	dim.shared = 0;
	dim.pid = pid;
	adopt_threads();
	publish(pid);
}

void dim_shutdown(void)
{
	struct image *image = dim.image;

	if (!begin())
		return;
	unmap(dim.shared, sizeof(*dim.shared));
	dim.shared = 0;
	dim.image = 0;
	release_lock();
	unmap(image, sizeof(*image));
}
