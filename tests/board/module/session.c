// SPDX-License-Identifier: MIT OR Apache-2.0
// A whole session with the module in one small program. usage: session RECORDS close|leave|die
//
// Counts cycles (or, without a PMU, time) on every CPU, admits everyone, works until RECORDS records of its own have come,
// checks them, and goes: closing what it opened, leaving that to the kernel, or killed with everything running.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "varid_module.h"

#define RING_PAGES 16

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct varid_module_session session = { .version = VARID_MODULE_VERSION, .ring_pages = RING_PAGES };
	struct varid_module_target everyone = { .target.flags = VARID_TARGET_NO_STACK };
	size_t page = sysconf(_SC_PAGESIZE), size = RING_PAGES * page;
	int device = open(VARID_MODULE_DEVICE, O_RDWR), cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long wanted, own = 0, all = 0;
	volatile unsigned work = 0;

	if (argc != 3)
		return 2;
	wanted = strtoul(argv[1], NULL, 0);
	if (device < 0)
		fail(VARID_MODULE_DEVICE);
	if (ioctl(device, VARID_MODULE_SESSION, &session))
		fail("VARID_MODULE_SESSION");
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct varid_module_counter counter = { .cpu = cpu, .rate = 100000, .flags = VARID_COUNTER_JITTER };

		if (ioctl(device, VARID_MODULE_COUNTER, &counter)) {
			counter.type = 1; /* PERF_TYPE_SOFTWARE, whose event 0 is the CPU clock */
			if (ioctl(device, VARID_MODULE_COUNTER, &counter))
				fail("VARID_MODULE_COUNTER");
		}
	}
	if (ioctl(device, VARID_MODULE_TARGET, &everyone))
		fail("VARID_MODULE_TARGET");
	if (ioctl(device, VARID_MODULE_ENABLE))
		fail("VARID_MODULE_ENABLE");
	while (own < wanted) {
		for (int cpu = 0; cpu < cpus; cpu++) {
			struct varid_module_ring *ring = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_SHARED, device,
							      (off_t)cpu * (size + page));
			char *data = (char *)ring + page;
			unsigned long long head;

			if (ring == MAP_FAILED)
				fail("mmap");
			head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
			for (unsigned long long at = ring->tail; at < head; all++) {
				char bytes[8 + sizeof(struct varid_record)];
				struct varid_record record;
				unsigned short length;

				for (size_t i = 0; i < sizeof(bytes); i++)
					bytes[i] = data[(at + i) % size];
				memcpy(&length, bytes + 6, sizeof(length));
				memcpy(&record, bytes + 8, sizeof(record));
				if (length < sizeof(bytes) || length > head - at || (int)record.cpu != cpu ||
				    !record.ip || !record.period) {
					printf("session: record of %u bytes, CPU %u, ip %llx, period %llu\n", length,
					       record.cpu, (long long)record.ip, (long long)record.period);
					return 1;
				}
				own += (int)record.pid == getpid();
				at += length;
			}
			__atomic_store_n(&ring->tail, head, __ATOMIC_RELEASE);
			munmap(ring, size + page);
		}
		for (int i = 0; i < 50000; i++)
			work += i;
	}
	if (!strcmp(argv[2], "die"))
		kill(getpid(), SIGKILL);
	if (!strcmp(argv[2], "close"))
		close(device);
	return 0;
}
