// What does the kernel say to another rate? Preloaded: it is asked as ever, and refuses the one in $REFUSED for the last
// CPU. What was asked is in the file $PERIODS: descriptor, value, result.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERF_EVENT_IOC_PERIOD 0x40082404ul
/* Shorter ones would be all that the machine does. */
#define SHORTEST 50000

static int ask(int fd, unsigned long request, void *argument)
{
	static int refused;
	const char *path = getenv("PERIODS"), *wrong = getenv("REFUSED");
	uint64_t value;
	FILE *file;
	int result;

	if (request != PERF_EVENT_IOC_PERIOD || !path || !wrong)
		return (int)syscall(SYS_ioctl, fd, request, argument);
	value = *(uint64_t *)argument;
	if (value == strtoull(wrong, NULL, 10) && ++refused == sysconf(_SC_NPROCESSORS_ONLN)) {
		errno = EINVAL;
		result = -1;
	} else {
		result = value < SHORTEST ? 0 : (int)syscall(SYS_ioctl, fd, request, argument);
	}
	file = fopen(path, "ae");
	if (file) {
		int error = errno;

		fprintf(file, "%d %llu %d\n", fd, (unsigned long long)value, result);
		fclose(file);
		errno = error;
	}
	return result;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return ask(fd, request, argument);
}
