/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Declarations shared by the parts of dim, and not visible outside.
 */
#ifndef VARID_DIM_INSIDE_H
#define VARID_DIM_INSIDE_H

#include "calls.h"

/* base.c: replacements for C library functions. */

DIM_HIDDEN void dim_copy(void *to, const void *from, unsigned long size);
DIM_HIDDEN void *dim_map(unsigned long size, int prot, int flags, int fd);
DIM_HIDDEN void dim_unmap(void *at, unsigned long size);
DIM_HIDDEN varid_u32 dim_process(void);
DIM_HIDDEN varid_u64 dim_now(void);

/* Held only for moments. Released by __sync_lock_release. */
DIM_HIDDEN void dim_take(int *lock);

/* Writes a number with at least this many digits, without a terminator. Returns their number (at most 20). */
DIM_HIDDEN unsigned long dim_decimal(char *to, varid_u64 number, unsigned digits);

/* files.c: files, and descriptors that the app may close. */

/* A descriptor of dim's, valid while it refers to the same file as before. */
struct dim_file {
	int is_open;
	int fd;
	varid_u64 device;
	varid_u64 number;
};

/* Sets the folder of files for a kernel without memfd; null: none. */
DIM_HIDDEN void dim_files_in(const char *folder);

/*
 * Maps a new file of this size. Returns null if that fails. mine: seals it against later writers. file: receives the
 * open descriptor; null: the descriptor is closed.
 */
DIM_HIDDEN void *dim_share(const char *name, unsigned long size, int mine, struct dim_file *file);

DIM_HIDDEN void dim_keep(struct dim_file *file, long fd);
DIM_HIDDEN int dim_is_own(const struct dim_file *file);

/*
 * Replaces the file by the one that fd refers to, at the same descriptor number if that is still dim's. Returns 1 on
 * success. Closes fd.
 */
DIM_HIDDEN int dim_replace(struct dim_file *file, long fd);
DIM_HIDDEN void dim_close(struct dim_file *file);

/* dim.c: the tunnel. */

/* Publishes in the tunnel where the control page is, or the calls. */
DIM_HIDDEN void dim_tell_file(int calls, const struct varid_file *file);
DIM_HIDDEN void dim_tell_tactic(varid_u32 tactic);

/*
 * Sets the functions that are called in a forked child, before its tunnel is published or when it cannot have one, and
 * when dim ends.
 */
DIM_HIDDEN void dim_follow(void (*forked)(int has_tunnel), void (*ended)(void));

/* calls.c: the table of methods. */

/* Set when the VM counts no longer, or has ended: methods are then not described, and no table is made. */
extern DIM_HIDDEN int dim_ended;

DIM_HIDDEN void dim_table_init(dim_describe *describe);

/* Makes the table if it does not exist. Returns null if that fails. */
DIM_HIDDEN struct varid_calls *dim_table_make(void);

/* Returns null if the table was not needed so far. */
DIM_HIDDEN struct varid_calls *dim_table(void);

/* Applies the session and the filter of order. from_zero: resets the counts. */
DIM_HIDDEN void dim_table_renew(const struct varid_control *order, int from_zero);

/*
 * In a forked child: copies the methods to the same places in a file of its own. wanted: if 0, removes the table
 * instead.
 */
DIM_HIDDEN void dim_table_fork(int wanted);

/* log.c: a line per event. */
extern DIM_HIDDEN int dim_log_on;

/* path: the path without the pid; "": no log. */
DIM_HIDDEN void dim_log_to(const char *path);
DIM_HIDDEN int dim_log_line(enum dim_event event, varid_u64 address); /* 0: the line is lost */
DIM_HIDDEN void dim_log_fork(void);

#endif
