/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How is areavm started? A VM for tests that keeps its frames as Dalvik does.
 *
 *   areavm DEX ROUNDS    ROUNDS on each of two threads, which attach for each anew; DEX is shadowvm's
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "areas.h"
#include "run.h"

static unsigned long rounds;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void describe(const char *path)
{
	struct varid_layout layout = { 0 };
	struct varid_range body = { .kind = VARID_RANGE_BODY };
	size_t size;
	const uint8_t *dex = map_methods(path, &size);

	area_layout(&layout, (uintptr_t)dex);
	layout.machine = METHODS_MACHINE;
	body_code(&body.start, &body.end);
	if (!dim_init(VARID_VM_DALVIK, &layout, &body, 1, getenv("XDG_RUNTIME_DIR")))
		fprintf(stderr, "areavm: no tunnel\n");
	dim_dex((uintptr_t)dex, size, path, VARID_CODE_BOOT);
}

static void *run(void *result)
{
	uint32_t *out = result;
	unsigned long i;

	for (i = 0; i < rounds; i++) {
		/* As a thread that leaves the VM and comes back. */
		area_thread_start();
		*out = run_methods(*out + (uint32_t)i);
		area_thread_exit();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint32_t first = 1, second = 2;
	pthread_t other;

	if (argc != 3) {
		fprintf(stderr, "usage: areavm DEX ROUNDS\n");
		return 2;
	}
	rounds = strtoul(argv[2], NULL, 0);
	describe(argv[1]);
	if (pthread_create(&other, NULL, run, &second))
		fail("pthread_create");
	run(&first);
	pthread_join(other, NULL);
	printf("result %08x\n", first ^ second);
	return 0;
}
