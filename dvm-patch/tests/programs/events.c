/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A VM that carries out the commands on its standard input, to test what dim publishes.
 *
 *   init [FOLDER]   nomemfd   dex START SIZE NAME   gone START   thread RECORDS   exit
 *   enter METHOD    leave     leaveto DEPTH         fork         afterfork        shutdown
 *   trace START PC [TIMES]    tracesgone
 *   calls [TACTIC [LOG]]      poll                  call EVENT METHOD [TIMES [DEX]]
 *   remap METHOD              record METHOD         methodgone METHOD             methodsgone DEX
 *   threads COUNT METHOD TIMES                      sweep METHOD STEP TIMES
 *   churn TIMES    busy       die METHOD            close FROM   open FILE TIMES
 *
 * Each line is answered by one: "ok PID VALUE".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "dim.h"

static int init(const char *folder)
{
	const struct varid_layout layout = {
		.machine = 62,
		.word = 8,
		.rule_count = 1,
		.quick_rule = VARID_NO_RULE,
		.rules = { { .kind = VARID_RULE_SHADOW, .reg_pc = VARID_NO_REG, .reg_frame = VARID_NO_REG } },
	};
	const struct varid_range ranges[] = { { 0x1000, 0x2000, VARID_RANGE_INTERPRETER, 0 } };

	return dim_init(VARID_VM_OTHER, &layout, ranges, 1, folder);
}

/* Makes memfd_create fail from now on, as on a kernel without it. */
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

static unsigned switches;
static int busy; /* the VM cannot switch its events */
static varid_u64 dead; /* a method that must not be described any more */

/* Even methods are org.example.Even.m, odd ones org.other.Odd.m; those from 0x1000 on have no name. */
static void describe(varid_u64 method, struct dim_method *out)
{
	if (method == dead)
		abort();
	out->insns = method << 8;
	out->dex = 0x10000;
	out->index = (varid_u32)method;
	if (method >= 0x1000)
		return;
	out->descriptor = method % 2 ? "Lorg/other/Odd;" : "Lorg/example/Even;";
	out->name = "m";
}

static int switched(int on)
{
	if (!busy)
		switches = switches * 10 + 1 + (unsigned)on;
	return !busy;
}

static unsigned long long job[2];

static void *work(void *unused)
{
	unsigned long long i;

	for (i = 0; i < job[1]; i++)
		dim_call(DIM_INVOKE, job[0] + i % 64, 0);
	return unused;
}

static void run_threads(unsigned long long count, unsigned long long method, unsigned long long times)
{
	pthread_t threads[16];
	unsigned long long i;

	job[0] = method;
	job[1] = times;
	for (i = 0; i < count && i < 16; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	while (i--)
		pthread_join(threads[i], NULL);
}

/* Like closefrom(): the app may close any descriptor. */
static void close_from(int first)
{
	int fd;

	for (fd = first; fd < 256; fd++)
		close(fd);
}

int main(void)
{
	static char line[8192], word[16], text[512], more[512], most[8192];
	unsigned long long a, b, c, d, value;

	while (fgets(line, sizeof(line), stdin)) {
		word[0] = text[0] = 0;
		more[0] = 0;
		a = b = c = d = value = 0;
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
		} else if (!strcmp(word, "calls")) {
			int words = sscanf(line, "%*s %511s %511s %8191s", text, more, most);

			dim_calls_init(describe, switched, words > 0 ? text : NULL, words > 1 ? more : NULL,
				       words > 2 ? most : NULL);
			value = dim_calls_on();
		} else if (!strcmp(word, "poll")) {
			dim_calls_poll();
			value = switches;
		} else if (!strcmp(word, "call") && sscanf(line, "%*s %llx %llx %llx %llx", &a, &b, &c, &d) >= 2) {
			do
				dim_call((enum dim_event)a, b, d);
			while (c && --c);
		} else if (!strcmp(word, "sweep") && sscanf(line, "%*s %llx %llx %llx", &a, &b, &c) == 3) {
			for (; c--; a += b)
				dim_call(DIM_INVOKE, a, 0);
		} else if (!strcmp(word, "methodgone") && sscanf(line, "%*s %llx", &a) == 1) {
			dim_calls_method_gone(a);
		} else if (!strcmp(word, "methodsgone") && sscanf(line, "%*s %llx", &a) == 1) {
			dim_calls_dex_gone(a);
		} else if (!strcmp(word, "remap") && sscanf(line, "%*s %llx", &a) == 1) {
			value = dim_remap(a);
		} else if (!strcmp(word, "record") && sscanf(line, "%*s %llx", &a) == 1) {
			value = dim_enter(a);
			dim_remap_record((unsigned long)value, a);
		} else if (!strcmp(word, "trace") && sscanf(line, "%*s %llx %llx %llx", &a, &b, &c) >= 2) {
			do
				dim_trace(a, b);
			while (a += 16, c && --c);
		} else if (!strcmp(word, "tracesgone")) {
			dim_traces_gone();
		} else if (!strcmp(word, "shutdown")) {
			dim_shutdown();
		} else if (!strcmp(word, "busy")) {
			busy = !busy;
		} else if (!strcmp(word, "die") && sscanf(line, "%*s %llx", &a) == 1) {
			dead = a;
		} else if (!strcmp(word, "close") && sscanf(line, "%*s %llx", &a) == 1) {
			close_from((int)a);
		} else if (!strcmp(word, "open") && sscanf(line, "%*s %511s %llx", text, &a) == 2) {
			while (a--)
				value = (unsigned long long)open(text, O_RDWR | O_CREAT, 0600);
		} else if (!strcmp(word, "threads") && sscanf(line, "%*s %llx %llx %llx", &a, &b, &c) == 3) {
			run_threads(a, b, c);
		} else if (!strcmp(word, "churn") && sscanf(line, "%*s %llx", &a) == 1) {
			/* Two dex files that replace each other. */
			for (b = 0; b < a; b++) {
				dim_dex(0x10000, 0x1000, "aaaaaaaaaaaaaaaaaaaaaaaa", 0);
				dim_dex(0x10800, 0x2000, "bbbbbbbbbbbbbbbbbbbbbbbb", VARID_CODE_BOOT);
			}
		} else if (!strcmp(word, "afterfork")) {
			dim_after_fork();
		} else if (!strcmp(word, "fork")) {
			/*
			 * A bare fork, which is not reported to dim. The child continues the
			 * conversation.
			 */
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
