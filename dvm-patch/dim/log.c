/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes a log with a line per event.
 */
#include "inside.h"
#include "syscall.h"

#define LINE 64

int dim_log_on;

static struct {
	struct dim_file file;
	int lost; /* no file could be opened, so each line is lost */
} log;

/* Opens the log file of this process. */
static long open_log(const char *path)
{
	char name[VARID_CONTROL_LOG + 24];
	unsigned long n = 0;

	while (path[n] && n < VARID_CONTROL_LOG) {
		name[n] = path[n];
		n++;
	}
	name[n++] = '.';
	n += dim_decimal(name + n, dim_process(), 1);
	name[n] = 0;
	return dim_syscall(SYS_OPENAT, DIM_CWD, (long)name,
			   DIM_O_WRONLY | DIM_O_APPEND | DIM_O_CLOEXEC | DIM_O_CREAT | DIM_O_NOFOLLOW, 0600, 0, 0);
}

/*
 * Replaces the file at the same descriptor number: another thread may be about to write to it.
 */
void dim_log_to(const char *path)
{
	int on = path[0] != 0;
	long fd = on ? open_log(path) : -1;

	if (!on)
		dim_log_on = 0;
	log.lost = fd < 0;
	if (fd < 0 && log.file.is_open)
		fd = dim_syscall(SYS_OPENAT, DIM_CWD, (long)"/dev/null", DIM_O_WRONLY | DIM_O_APPEND | DIM_O_CLOEXEC,
				 0, 0, 0);
	if (fd >= 0 && !dim_replace(&log.file, fd))
		log.lost = 1;
	__sync_synchronize();
	dim_log_on = on;
}

/* "> 7f1c3a5e2d40 4711 81234567890": event, method, thread, CLOCK_MONOTONIC ns. */
int dim_log_line(enum dim_event event, varid_u64 address)
{
	char line[LINE];
	unsigned long n = 0;
	int shift = 60;

	if (log.lost || !dim_is_own(&log.file))
		return 0;
	line[n++] = event == DIM_INVOKE ? '>' : event == DIM_RETURN ? '<' : '!';
	line[n++] = ' ';
	while (shift && !(address >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		line[n++] = "0123456789abcdef"[address >> shift & 15];
	line[n++] = ' ';
	n += dim_decimal(line + n, (varid_u64)dim_syscall(SYS_GETTID, 0, 0, 0, 0, 0, 0), 1);
	line[n++] = ' ';
	n += dim_decimal(line + n, dim_now(), 1);
	line[n++] = '\n';
	return dim_syscall(SYS_WRITE, log.file.fd, (long)line, (long)n, 0, 0, 0) == (long)n;
}

/* Closes the parent's file. */
void dim_log_fork(void)
{
	dim_log_on = 0;
	dim_close(&log.file);
}
