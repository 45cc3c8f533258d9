/*
 * A kernel that refuses the BPF programs for all rules: loaded before the C library, it answers for the kernel when one of them, whose names
 * have "_any" in them as far as a name has room, is to be loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_refused(long command, const union bpf_attr *attr, long size)
{
	char name[BPF_OBJ_NAME_LEN + 1] = "";

	if (command != BPF_PROG_LOAD || (size_t)size < offsetof(union bpf_attr, prog_name) + BPF_OBJ_NAME_LEN)
		return 0;
	memcpy(name, attr->prog_name, BPF_OBJ_NAME_LEN);
	return strstr(name, "_an") != NULL;
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	va_list list;
	long a[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_bpf && is_refused(a[0], (const union bpf_attr *)a[1], a[2])) {
		errno = EACCES;
		return -1;
	}
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
