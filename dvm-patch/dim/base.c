/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The few functions of a C library that dim needs.
 */
#include "inside.h"
#include "syscall.h"

/* volatile, so that the compiler does not replace the loop by a call of memcpy. */
void dim_copy(void *to, const void *from, unsigned long size)
{
	volatile unsigned char *t = to;
	const unsigned char *f = from;

	while (size--)
		*t++ = *f++;
}

void *dim_map(unsigned long size, int prot, int flags, int fd)
{
	long at = dim_syscall(SYS_MMAP, 0, (long)size, prot, flags, fd, 0);

	return (unsigned long)at > -(unsigned long)DIM_MAX_ERRNO - 1 ? 0 : (void *)at;
}

void dim_unmap(void *at, unsigned long size)
{
	dim_syscall(SYS_MUNMAP, (long)at, (long)size, 0, 0, 0, 0);
}

varid_u32 dim_process(void)
{
	return (varid_u32)dim_syscall(SYS_GETPID, 0, 0, 0, 0, 0, 0);
}

varid_u64 dim_now(void)
{
	long t[2] = { 0, 0 };

	dim_syscall(SYS_CLOCK_GETTIME, DIM_CLOCK_MONOTONIC, (long)t, 0, 0, 0, 0);
	return (varid_u64)t[0] * 1000000000u + (varid_u64)t[1];
}

void dim_take(int *lock)
{
	while (__sync_lock_test_and_set(lock, 1))
		dim_syscall(SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
}

unsigned long dim_decimal(char *to, varid_u64 number, unsigned digits)
{
	unsigned long n = 0;
	char reversed[20];

	do {
		reversed[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number || n < digits);
	for (digits = 0; digits < n; digits++)
		to[digits] = reversed[n - 1 - digits];
	return n;
}
