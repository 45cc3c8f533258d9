/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process that executes code of a VM's library which nobody knows: maps the file given,
 * overwrites its own copy of a page with a loop, and runs that for a while.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	/* mov rcx, rdi; dec rcx; jnz; ret */
	static const uint8_t loop[] = { 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3 };
	const size_t len = 1 << 20;
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	uint8_t *map;
	int i;

	map = mmap(0, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	memcpy(map + len / 2, loop, sizeof(loop));
	for (i = 0; i < 60; i++)
		((void (*)(uint64_t))(uintptr_t)(map + len / 2))(50000000);
	return 0;
}
