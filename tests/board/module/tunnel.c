// SPDX-License-Identifier: MIT OR Apache-2.0
// Is a tunnel's memory read at an overflow, even where the process's own page is gone, and does a child go without?
//
// A shadow stack in the tunnel says which of two functions runs. Work in ratio 1:3 is sampled by a session of its own;
// each sample whose ip is in a function must carry that function's record. Halfway the process forbids itself to read the
// mapping: the kernel still can.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "varid_module.h"

#define RING_PAGES 256
#define TUNNEL 16384

static struct varid_shadow *shadow;
static __thread struct varid_shadow *base;
static volatile unsigned sink;

static __attribute__((noinline, aligned(64))) void one(unsigned n)
{
	while (n--)
		sink = sink * 3 + 1;
}

static __attribute__((noinline, aligned(64))) void three(unsigned n)
{
	while (n--)
		sink = sink * 5 + 3;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void call(void (*function)(unsigned), unsigned n)
{
	shadow->records[0].method = (unsigned long)function;
	shadow->records[0].sp = (unsigned long)__builtin_frame_address(0);
	__atomic_store_n(&shadow->depth, 1, __ATOMIC_RELEASE);
	function(n);
	__atomic_store_n(&shadow->depth, 0, __ATOMIC_RELEASE);
}

static void hidden(void (*function)(unsigned))
{
	shadow->records[0].method = (unsigned long)function;
	shadow->depth = 1;
	mprotect(shadow, TUNNEL, PROT_NONE);
	function(20000000);
	mprotect(shadow, TUNNEL, PROT_READ | PROT_WRITE);
	shadow->depth = 0;
}

/* Both functions are shorter than 64 bytes; the lowest bit of an address says Thumb. */
static int is_in(void (*function)(unsigned), unsigned long ip)
{
	unsigned long start = (unsigned long)function & ~1ul;

	return ip >= start && ip < start + 64;
}

int main(void)
{
	struct varid_module_session session = { .version = VARID_MODULE_VERSION, .ring_pages = RING_PAGES };
	struct varid_module_counter counter = { .rate = 500000, .flags = VARID_COUNTER_JITTER | VARID_COUNTER_EXCLUDE_KERNEL };
	struct varid_module_target target = { .pid = getpid(), .target.flags = VARID_TARGET_READY | VARID_TARGET_NO_STACK };
	size_t page = sysconf(_SC_PAGESIZE), size = RING_PAGES * page;
	unsigned long right[2] = { 0, 0 }, wrong = 0, without = 0;
	int tunnel = open(VARID_MODULE_DEVICE, O_RDWR), device = open(VARID_MODULE_DEVICE, O_RDWR), status;
	struct varid_module_ring *ring;

	if (tunnel < 0 || device < 0)
		fail(VARID_MODULE_DEVICE);
	shadow = mmap(NULL, TUNNEL, PROT_READ | PROT_WRITE, MAP_SHARED, tunnel, 0);
	if (shadow == MAP_FAILED)
		fail("a tunnel");
	if (mmap(NULL, TUNNEL, PROT_READ, MAP_SHARED, tunnel, 0) != MAP_FAILED)
		return puts("a second tunnel of the same file"), 1;
	base = shadow;
	shadow->tid = gettid();
	shadow->capacity = 4;
	if (fork() == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)shadow ? 1 : 1);
	}
	wait(&status);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
		return puts("a forked child has the tunnel"), 1;

	target.target.layout.rule_count = 1;
	target.target.layout.rules[0].kind = VARID_RULE_SHADOW;
	target.target.layout.word = sizeof(void *);
	target.target.layout.tls_offset = (char *)&base - (char *)__builtin_thread_pointer();
	if (ioctl(device, VARID_MODULE_SESSION, &session) || ioctl(device, VARID_MODULE_COUNTER, &counter) ||
	    ioctl(device, VARID_MODULE_TARGET, &target) || ioctl(device, VARID_MODULE_ENABLE))
		fail("a session");
	ring = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);
	if (ring == MAP_FAILED)
		fail("a ring");
	for (int i = 0; i < 20; i++) {
		call(one, 500000);
		call(three, 1500000);
	}
	hidden(three);
	ioctl(device, VARID_MODULE_DISABLE);

	for (unsigned long long at = 0; at < ring->head;) {
		char *header = (char *)ring + page + at % size;
		struct varid_record *record = (void *)(header + 8);
		unsigned long long *frame = (void *)(record + 1);
		unsigned long function = is_in(one, record->ip) ? (unsigned long)one :
					 is_in(three, record->ip) ? (unsigned long)three : 0;

		/* Stack slices are long here, and one record lies across the ring's end: it is left out. */
		if (at % size + *(unsigned short *)(header + 6) <= size && function) {
			if (!record->frames)
				without++;
			else if (frame[1] != function) /* a frame: address with flags, then its pc */
				wrong++;
			else
				right[function == (unsigned long)three]++;
		}
		at += *(unsigned short *)(header + 6);
	}
	printf("tunnel: %lu and %lu samples right, %lu wrong, %lu without a frame\n", right[0], right[1], wrong, without);
	return wrong || without || right[0] < 20 || right[1] < 60;
}
