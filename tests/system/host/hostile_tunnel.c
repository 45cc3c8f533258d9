/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What may a process put into its tunnel? This one lies: random bytes, a right magic with wrong sizes,
 * bytes that change while they are read, a file cut short under its mapping, no bytes at all.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "varid_tunnel.h"

#define SIZE (64 * 1024)

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void fill(unsigned char *at, size_t size, uint64_t *state)
{
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t x = next(state);

		memcpy(at + i, &x, 8);
	}
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "random";
	int fd = memfd_create("varid-tunnel", 0);
	struct varid_tunnel header;
	uint64_t state = 1;
	unsigned char *map;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 1;
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	if (strcmp(kind, "empty"))
		fill(map, SIZE, &state);
	/* All that is checked first is right; tables and layout are what they are. */
	memcpy(&header, map, sizeof(header));
	memcpy(header.magic, VARID_TUNNEL_MAGIC, sizeof(header.magic));
	header.version = VARID_TUNNEL_VERSION;
	header.header_size = sizeof(header);
	header.size = SIZE;
	header.pid = (uint32_t)getpid();
	header.generation = 2;
	if (strcmp(kind, "random") && strcmp(kind, "empty"))
		memcpy(map, &header, sizeof(header));
	if (!strcmp(kind, "truncated") && ftruncate(fd, 100))
		return 1;
	/* Work to be sampled, until somebody ends it. */
	for (;;) {
		if (!strcmp(kind, "rewritten"))
			fill(map + sizeof(header), SIZE - sizeof(header), &state);
		else
			next(&state);
	}
}
