// SPDX-License-Identifier: MIT OR Apache-2.0
// Does the module take whatever a program does with its device? usage: fuzz SEED STEPS
//
// Draws requests, half of them valid but for a detail, from a seed; maps, moves, protects and unmaps; writes into rings'
// control pages and tunnels; forks; lets counters overflow meanwhile in memory that its own layouts lead through. It
// judges nothing but what must hold: the kernel is alive, a forked child has no mapping, no record is malformed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "varid_module.h"

#define FILES 6
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static unsigned long long state;

static unsigned random32(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 33;
}

static unsigned below(unsigned n)
{
	return random32() % n;
}

static unsigned long long any(void)
{
	static const unsigned long long edges[] = { 0, 1, 2, 7, 8, 4095, 4096, 65535, 0x7fffffff, 0xffffffff,
		0x7fffffffffffffffull, 0x8000000000000000ull, 0xffffffffffffffffull, 0xffff800008000000ull };

	return below(3) ? edges[below(sizeof(edges) / sizeof(*edges))] : (unsigned long long)random32() << below(40);
}

static struct {
	int fd;
	unsigned ring_pages;
	char *map;
	size_t len;
	int tunnel;
	int pieces; /* not whole any more: not to be touched */
} files[FILES];

static unsigned long ioctls, taken, records, maps;

static int request(int fd, unsigned long number, void *argument)
{
	int result = ioctl(fd, number, argument);

	ioctls++;
	taken += result >= 0;
	return result;
}

static void scramble(void *what, size_t size)
{
	unsigned n = below(3);

	while (n--) {
		unsigned long long value = any();
		size_t at = below(size / 4) * 4;

		memcpy((char *)what + at, &value, at + 8 <= size ? 8 : 4);
	}
}

static void session(int i)
{
	struct varid_module_session session = { VARID_MODULE_VERSION, 1u << below(6), below(2) ? 0 : 4096, 0, any() };

	if (below(6) == 0)
		scramble(&session, sizeof(session));
	if (session.ring_pages > 4096)
		session.ring_pages = 65535; /* memory is not what is tested */
	if (request(files[i].fd, VARID_MODULE_SESSION, &session) == 0)
		files[i].ring_pages = session.ring_pages;
}

static void counter(int i)
{
	static const unsigned kinds[][2] = { { 1, 0 }, { 0, 0 }, { 0, 1 }, { 1, 1 }, { 1, 2 }, { 1, 3 }, { 4, 17 } };
	const unsigned *kind = kinds[below(7)];
	struct varid_module_counter counter = {
		.type = kind[0], .config = kind[1], .rate = 20000 + below(2000000), .flags = below(16),
	};

	if (counter.flags & VARID_COUNTER_FREQUENCY)
		counter.rate = 1 + below(5000);
	if (below(6) == 0)
		scramble(&counter, sizeof(counter));
	request(files[i].fd, VARID_MODULE_COUNTER, &counter);
}

/* Frames, shadow stacks and threads to walk through: some of it true, some absent, some the kernel's. */
static char *jungle;
#define JUNGLE (64 * 4096)

static void target(int i)
{
	struct varid_module_target target = { .pid = below(3) ? (unsigned)getpid() : any() };
	struct varid_layout *layout = &target.target.layout;

	layout->rule_count = 1 + below(VARID_MAX_RULES);
	layout->quick_rule = below(2) ? below(VARID_MAX_RULES) : VARID_NO_RULE;
	layout->flags = below(2);
	layout->word = below(2) ? 8 : 4;
	layout->tls_offset = (long long)(unsigned long)jungle + below(JUNGLE) -
			     (long long)(unsigned long)__builtin_thread_pointer();
	layout->thread_tid = below(64) * 4;
	layout->thread_fragment = below(64) * 4;
	layout->fragment_quick = below(8) * 8;
	layout->fragment_link = below(8) * 8;
	layout->fragment_top = below(8) * 8;
	for (unsigned n = 0; n < VARID_MAX_RULES; n++) {
		struct varid_rule *rule = &layout->rules[n];

		rule->kind = 1 + below(4);
		rule->reg_pc = random32();
		rule->reg_frame = random32();
		rule->frame_link = below(8) * 8;
		rule->frame_method = below(8) * 8;
		rule->frame_pc = below(8) * 8;
		rule->frame_insns = below(8) * 8;
		rule->frame_index = below(8) * 8;
		rule->special_count = below(8);
		rule->special_methods = (unsigned long)jungle + below(JUNGLE);
		rule->cfa_word = below(2) ? -8 : VARID_NO_WORD;
		rule->cfa_bias = below(16) * 8;
		rule->saved_pc = 8 + below(8) * 8;
		rule->saved_frame = 8 + below(8) * 8;
		rule->saved_return = 8 + below(8) * 8;
		rule->native_flag = below(2) ? any() : 0;
		rule->native_size = below(32) * 8;
		rule->code_end = any();
		target.target.body[n].start = below(2) ? any() : 0;
		target.target.body[n].end = any();
	}
	target.target.flags = random32() & 63;
	if (below(4) == 0)
		scramble(&target, sizeof(target));
	request(files[i].fd, VARID_MODULE_TARGET, &target);
}

static void plant(void)
{
	unsigned n = 64;

	while (n--) {
		size_t at = below(JUNGLE / 8) * 8;
		unsigned long long value = below(4) ? (unsigned long)jungle + below(JUNGLE) : any();
		unsigned tid = gettid();

		memcpy(jungle + at, &value, 8);
		memcpy(jungle + below(JUNGLE / 4) * 4, &tid, 4);
	}
	if (below(8) == 0)
		madvise(jungle + below(64) * PAGE, PAGE, MADV_DONTNEED);
}

static void unmap(int i)
{
	if (files[i].map)
		munmap(files[i].map, files[i].len);
	files[i].map = NULL;
}

static void map(int i)
{
	size_t pages = files[i].ring_pages + 1;
	size_t len = (below(4) ? pages : 1 + below(300)) * PAGE;
	off_t offset = below(4) ? 0 : (off_t)(below(5) * below(pages + 2)) * PAGE;
	char *at;

	unmap(i);
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, below(5) ? MAP_SHARED : MAP_PRIVATE, files[i].fd, offset);
	if (at == MAP_FAILED)
		return;
	maps++;
	files[i].map = at;
	files[i].len = len;
	files[i].tunnel = !files[i].ring_pages;
	files[i].pieces = 0;
	if (files[i].tunnel)
		memcpy(at, jungle, len < JUNGLE ? len : JUNGLE);
	else if (offset == 0 && len == pages * PAGE && ((struct varid_module_ring *)at)->reserved[0])
		abort();
}

static void drain(int i)
{
	struct varid_module_ring *ring = (void *)files[i].map;
	unsigned long long size = files[i].ring_pages * PAGE, at, head;
	char *data = files[i].map + PAGE;

	if (!ring || files[i].tunnel || files[i].pieces || files[i].len != size + PAGE)
		return;
	head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	at = ring->tail;
	while (at < head && head - at <= size) {
		struct { unsigned type; unsigned short misc, size; } *header = (void *)(data + at % size);

		if (header->size % 8 || header->size < 8 || header->size > head - at ||
		    (header->type != VARID_MODULE_RECORD && header->type != 9)) {
			printf("fuzz: a record of type %x and %u bytes at %llu of %llu\n", header->type, header->size, at, head);
			exit(1);
		}
		records++;
		at += header->size;
	}
	__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
	if (below(10) == 0) { /* what a hostile reader does to its own records */
		ring->tail = any();
		ring->head = any();
		unmap(i);
		close(files[i].fd);
		files[i].fd = open(VARID_MODULE_DEVICE, O_RDWR | O_CLOEXEC);
		files[i].ring_pages = 0;
	}
}

/* A child must not have the mappings: it dies of the first byte it reads of one. */
static void child(int i)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (files[i].map)
			*(volatile char *)files[i].map;
		target(below(FILES));
		_exit(files[i].map ? 1 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
		printf("fuzz: a forked child has its parent's mapping\n");
		exit(1);
	}
}

static void spin(void)
{
	unsigned n = 2000 + below(60000);
	static volatile unsigned sink;

	while (n--)
		sink += n * n;
	if (below(4) == 0)
		getppid();
}

static void step(int i)
{
	struct varid_module_value value = { .id = below(5) ? below(4) : (unsigned)any() };
	struct varid_module_counts counts;
	struct pollfd poll_of = { files[i].fd, POLLIN, 0 };

	switch (below(24)) {
	case 0:
		if (below(3))
			break;
		unmap(i);
		close(files[i].fd);
		files[i].fd = open(VARID_MODULE_DEVICE, (below(8) ? O_RDWR : O_RDONLY) | O_CLOEXEC);
		files[i].ring_pages = 0;
		break;
	case 1:
		session(i);
		if (below(4)) { /* one that works */
			counter(i);
			target(i);
			request(files[i].fd, VARID_MODULE_ENABLE, NULL);
			map(i);
		}
		break;
	case 2: case 3: counter(i); break;
	case 4: case 5: case 6: target(i); break;
	case 7: request(files[i].fd, VARID_MODULE_FORGET, (void *)(below(2) ? (long)getpid() : (long)any())); break;
	case 8: case 9: request(files[i].fd, VARID_MODULE_ENABLE, NULL); break;
	case 10: request(files[i].fd, VARID_MODULE_DISABLE, NULL); break;
	case 11: request(files[i].fd, VARID_MODULE_VALUE, below(4) ? &value : (void *)(unsigned long)any()); break;
	case 12: request(files[i].fd, VARID_MODULE_COUNTS, below(4) ? &counts : (void *)(unsigned long)any()); break;
	case 13: request(files[i].fd, (unsigned)any(), (void *)(unsigned long)any()); break;
	case 14: request(files[i].fd, _IOC(below(4), 'V', below(12), below(200)), (void *)(unsigned long)any()); break;
	case 15: case 16: map(i); break;
	case 17:
		if (files[i].map && files[i].tunnel && !files[i].pieces)
			memcpy(files[i].map, jungle, files[i].len < JUNGLE ? files[i].len : JUNGLE);
		break;
	case 18: /* a mapping in pieces, or elsewhere */
		if (files[i].map && files[i].len > PAGE && below(2)) {
			char *at = files[i].map + PAGE * (1 + below(files[i].len / PAGE - 1));

			/* Nothing else may come to lie in the hole: it goes with the mapping. */
			mmap(at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			files[i].pieces = 1;
		} else if (files[i].map) {
			size_t len = files[i].len + PAGE * below(2);
			char *at = mremap(files[i].map, files[i].len, len, MREMAP_MAYMOVE);

			if (at != MAP_FAILED)
				files[i].map = at, files[i].len = len, files[i].pieces = 1;
			mprotect(files[i].map, PAGE, below(4));
			mprotect(files[i].map, PAGE, PROT_READ | PROT_WRITE);
		}
		break;
	case 19: poll(&poll_of, 1, 0); break;
	case 20: child(i); break;
	case 21: plant(); break;
	default: drain(i); break;
	}
	spin();
}

int main(int argc, char **argv)
{
	struct timespec now, start;
	unsigned long steps = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: fuzz SEED STEPS\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 0);
	jungle = mmap(NULL, JUNGLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < FILES; i++) {
		files[i].fd = open(VARID_MODULE_DEVICE, O_RDWR | O_CLOEXEC);
		if (files[i].fd < 0) {
			perror(VARID_MODULE_DEVICE);
			return 2;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (; steps < strtoul(argv[2], NULL, 0); steps++)
		step(below(FILES));
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("fuzz: %lu steps, %lu requests of which %lu were taken, %lu mappings, %lu records, %ld s\n", steps, ioctls, taken,
	       maps, records, (long)(now.tv_sec - start.tv_sec));
	return 0;
}
