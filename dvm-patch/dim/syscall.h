/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * System calls without a C library.
 *
 * Results are the kernel's: a negative errno for a failure.
 */
#ifndef VARID_DIM_SYSCALL_H
#define VARID_DIM_SYSCALL_H

#if defined(__x86_64__)
enum {
	SYS_OPENAT = 257, SYS_CLOSE = 3, SYS_UNLINKAT = 263, SYS_FTRUNCATE = 77, SYS_FCNTL = 72,
	SYS_MMAP = 9, SYS_MUNMAP = 11, SYS_GETPID = 39, SYS_GETTID = 186, SYS_CLOCK_GETTIME = 228,
	SYS_SCHED_YIELD = 24, SYS_MEMFD_CREATE = 319, SYS_WRITE = 1, SYS_DUP3 = 292, SYS_FSTAT = 5, SYS_MADVISE = 28,
};

static inline long dim_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__i386__)
enum {
	SYS_OPENAT = 295, SYS_CLOSE = 6, SYS_UNLINKAT = 301, SYS_FTRUNCATE = 93, SYS_FCNTL = 55,
	SYS_MMAP = 192, SYS_MUNMAP = 91, SYS_GETPID = 20, SYS_GETTID = 224, SYS_CLOCK_GETTIME = 265,
	SYS_SCHED_YIELD = 158, SYS_MEMFD_CREATE = 356, SYS_WRITE = 4, SYS_DUP3 = 330, SYS_FSTAT = 197, SYS_MADVISE = 219,
};

/*
 * ebx may hold the GOT and ebp the frame pointer. Both are swapped in and out, and their arguments are passed in
 * eax, so that no operand is addressed relative to a changed stack pointer.
 */
static inline long dim_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	const long ends[3] = { a, f, n };
	long result;

	__asm__ volatile("pushl %%ebx\n\tpushl %%ebp\n\t"
			 "movl 4(%%eax), %%ebp\n\tmovl (%%eax), %%ebx\n\tmovl 8(%%eax), %%eax\n\t"
			 "int $0x80\n\t"
			 "popl %%ebp\n\tpopl %%ebx"
			 : "=a"(result)
			 : "a"(ends), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return result;
}
#elif defined(__aarch64__)
enum {
	SYS_OPENAT = 56, SYS_CLOSE = 57, SYS_UNLINKAT = 35, SYS_FTRUNCATE = 46, SYS_FCNTL = 25,
	SYS_MMAP = 222, SYS_MUNMAP = 215, SYS_GETPID = 172, SYS_GETTID = 178, SYS_CLOCK_GETTIME = 113,
	SYS_SCHED_YIELD = 124, SYS_MEMFD_CREATE = 279, SYS_WRITE = 64, SYS_DUP3 = 24, SYS_FSTAT = 80, SYS_MADVISE = 233,
};

static inline long dim_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#elif defined(__arm__)
enum {
	SYS_OPENAT = 322, SYS_CLOSE = 6, SYS_UNLINKAT = 328, SYS_FTRUNCATE = 93, SYS_FCNTL = 221,
	SYS_MMAP = 192, SYS_MUNMAP = 91, SYS_GETPID = 20, SYS_GETTID = 224, SYS_CLOCK_GETTIME = 263,
	SYS_SCHED_YIELD = 158, SYS_MEMFD_CREATE = 385, SYS_WRITE = 4, SYS_DUP3 = 358, SYS_FSTAT = 197, SYS_MADVISE = 220,
};

/* The number goes to r7, which may be the frame pointer, so it is swapped in and out. */
static inline long dim_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	register long r3 __asm__("r3") = d;
	register long r4 __asm__("r4") = e;
	register long r5 __asm__("r5") = f;
	register long r6 __asm__("r6") = n;

	__asm__ volatile("mov ip, r7\n\tmov r7, r6\n\tsvc #0\n\tmov r7, ip"
			 : "+r"(r0)
			 : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(r6)
			 : "ip", "memory");
	return r0;
}
#else
#error "dim knows the system calls of x86-64, x86, arm64 and arm"
#endif

/* The kernel headers' AT_FDCWD, O_*, F_*, MFD_*, PROT_*, MAP_*, MADV_*. */
enum {
	DIM_CWD = -100,
#if defined(__x86_64__) || defined(__i386__)
	DIM_O_NOFOLLOW = 0400000,
#else
	DIM_O_NOFOLLOW = 0100000,
#endif
	DIM_O_RDWR = 2,
	DIM_O_CREAT = 0100,
	DIM_O_EXCL = 0200,
	DIM_O_CLOEXEC = 02000000,
	DIM_O_WRONLY = 1,
	DIM_O_APPEND = 02000,
	DIM_F_GETLK = 5,
	DIM_F_WRLCK = 1,
	DIM_F_UNLCK = 2,
	DIM_F_ADD_SEALS = 1033,
	DIM_F_SEAL_FUTURE_WRITE = 0x10,
	DIM_SEALS = 1 | 2 | 4, /* F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW */
	DIM_MFD_CLOEXEC = 1,
	DIM_MFD_ALLOW_SEALING = 2,
	DIM_MFD_NOEXEC_SEAL = 8,
	DIM_PROT_READ = 1,
	DIM_PROT_WRITE = 2,
	DIM_MAP_SHARED = 1,
	DIM_MAP_PRIVATE = 2,
	DIM_MAP_ANONYMOUS = 0x20,
	DIM_MAP_NORESERVE = 0x4000,
	DIM_MADV_WIPEONFORK = 18,
	DIM_CLOCK_MONOTONIC = 1,
};

#define DIM_MAX_ERRNO 4095

/* The structure that F_GETLK fills in. */
struct dim_lock {
	short type;
	short whence;
	long start;
	long length;
	int pid;
};

/*
 * Space for the result of SYS_FSTAT (fstat64 on 32-bit machines). It starts with a file's device and inode
 * number.
 */
struct dim_status {
	varid_u64 device;
	varid_u64 number; /* on 32-bit machines in its upper half */
	varid_u64 more[22];
};

#endif
