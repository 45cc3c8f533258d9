/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What does dim publish after each event? A VM that does as its standard input says.
 *
 *   init [FOLDER]   nomemfd   dex START SIZE NAME   gone START   thread RECORDS   exit
 *   enter METHOD    leave     leaveto DEPTH         fork         churn TIMES
 *
 * Each line is answered by one: "ok PID VALUE".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dim.h"

static int init(const char *folder)
{
	const struct varid_layout layout = {
		.kind = VARID_LAYOUT_SHADOW,
		.machine = 62,
		.word = 8,
		.reg_pc = VARID_NO_REG,
		.reg_frame = VARID_NO_REG,
	};
	const struct varid_range ranges[] = { { 0x1000, 0x2000, VARID_RANGE_INTERPRETER, 0 } };

	return dim_init(VARID_VM_OTHER, &layout, ranges, 1, folder);
}

/* From now on this kernel knows no memfd. */
static int forbid_memfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(void)
{
	static char line[1024], word[16], text[512];
	unsigned long long a, b, value;

	while (fgets(line, sizeof(line), stdin)) {
		word[0] = text[0] = 0;
		a = b = value = 0;
		if (sscanf(line, "%15s", word) != 1)
			continue;
		if (!strcmp(word, "init")) {
			value = (unsigned)init(sscanf(line, "%*s %511s", text) == 1 ? text : NULL);
		} else if (!strcmp(word, "nomemfd")) {
			value = (unsigned)forbid_memfd();
		} else if (!strcmp(word, "dex") && sscanf(line, "%*s %llx %llx %511s", &a, &b, text) == 3) {
			dim_dex(a, b, text, VARID_CODE_BOOT);
		} else if (!strcmp(word, "gone") && sscanf(line, "%*s %llx", &a) == 1) {
			dim_dex_gone(a);
		} else if (!strcmp(word, "thread") && sscanf(line, "%*s %llx", &a) == 1) {
			dim_thread_start((varid_u32)a);
			value = (unsigned long long)(uintptr_t)dim_shadow;
		} else if (!strcmp(word, "exit")) {
			dim_thread_exit();
		} else if (!strcmp(word, "enter") && sscanf(line, "%*s %llx", &a) == 1) {
			value = dim_enter(a);
		} else if (!strcmp(word, "leave")) {
			dim_leave();
		} else if (!strcmp(word, "leaveto") && sscanf(line, "%*s %llx", &a) == 1) {
			dim_leave_to((unsigned long)a);
		} else if (!strcmp(word, "churn") && sscanf(line, "%*s %llx", &a) == 1) {
			/* Two dex files that take each other's place. */
			for (b = 0; b < a; b++) {
				dim_dex(0x10000, 0x1000, "aaaaaaaaaaaaaaaaaaaaaaaa", 0);
				dim_dex(0x10800, 0x2000, "bbbbbbbbbbbbbbbbbbbbbbbb", VARID_CODE_BOOT);
			}
		} else if (!strcmp(word, "fork")) {
			/* Bare: nobody tells dim. The child goes on with the conversation. */
			long child = syscall(SYS_fork);

			if (child > 0) {
				waitpid((pid_t)child, NULL, 0);
				_exit(0);
			}
		} else {
			printf("unknown: %s", line);
		}
		printf("ok %d %llx\n", (int)getpid(), value);
		fflush(stdout);
	}
	return 0;
}
