/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Maps a file as code, whatever is in it, and computes for a while.
 * usage: hostile_library FILE MILLISECONDS
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static volatile unsigned long worked;

__attribute__((noinline, noclone)) static void work(void)
{
	for (int i = 0; i < 100000; i++)
		worked += (unsigned long)i;
}

int main(int count, char **arguments)
{
	struct timespec now;
	struct stat status;
	int fd;

	if (count != 3)
		return 2;
	fd = open(arguments[1], O_RDONLY);
	if (fd < 0 || fstat(fd, &status) || !status.st_size ||
	    mmap(0, (size_t)status.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	do {
		work();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < atol(arguments[2]));
	return 0;
}
