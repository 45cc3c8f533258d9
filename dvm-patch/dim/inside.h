/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What do the parts of dim share with each other, and with nobody else?
 */
#ifndef VARID_DIM_INSIDE_H
#define VARID_DIM_INSIDE_H

#include "calls.h"

/* base.c: what a C library would have. */

DIM_HIDDEN void dim_copy(void *to, const void *from, unsigned long size);
DIM_HIDDEN void *dim_map(unsigned long size, int prot, int flags, int fd);
DIM_HIDDEN void dim_unmap(void *at, unsigned long size);
DIM_HIDDEN varid_u32 dim_process(void);
DIM_HIDDEN varid_u64 dim_now(void);

/* Held for moments only; released by __sync_lock_release. */
DIM_HIDDEN void dim_take(int *lock);

/* Writes a number with at least so many digits; returns how many (at most 20). No zero follows. */
DIM_HIDDEN unsigned long dim_decimal(char *to, varid_u64 number, unsigned digits);

/* files.c: files, and descriptors that the app may close. */

/* A descriptor of dim's, which is its own as long as it leads to the file that it led to. */
struct dim_file {
	int is_open;
	int fd;
	varid_u64 device;
	varid_u64 number;
};

/* Where files go if the kernel has no memfd; null: nowhere. */
DIM_HIDDEN void dim_files_in(const char *folder);

/*
 * A new file of this size, mapped; null: none can be had. mine: nobody else can write it from
 * now on. file: how it stays open; null: not at all.
 */
DIM_HIDDEN void *dim_share(const char *name, unsigned long size, int mine, struct dim_file *file);

DIM_HIDDEN void dim_keep(struct dim_file *file, long fd);
DIM_HIDDEN int dim_is_own(const struct dim_file *file);

/* What fd leads to takes the file's place, at the same number if that is still its own; 1 if it did. fd is closed. */
DIM_HIDDEN int dim_replace(struct dim_file *file, long fd);
DIM_HIDDEN void dim_close(struct dim_file *file);

/* dim.c: the tunnel. */

/* The tunnel says where the control page is, or the calls. */
DIM_HIDDEN void dim_tell_file(int calls, const struct varid_file *file);
DIM_HIDDEN void dim_tell_tactic(varid_u32 tactic);

/*
 * What is called in a forked child before its tunnel is there for others to read, or cannot be had,
 * and when dim ends.
 */
DIM_HIDDEN void dim_follow(void (*forked)(int has_tunnel), void (*ended)(void));

/* calls.c: the table of methods. */

/* The VM counts no more, or has ended: no method is asked for and no table made from now on. */
extern DIM_HIDDEN int dim_ended;

DIM_HIDDEN void dim_table_init(dim_describe *describe);

/* Makes it unless it is there; null: it cannot be had. */
DIM_HIDDEN struct varid_calls *dim_table_make(void);

/* Null: it was never needed. */
DIM_HIDDEN struct varid_calls *dim_table(void);

/* Methods are counted for the session, by the filter, that are in order; from_zero: what was counted is forgotten. */
DIM_HIDDEN void dim_table_renew(const struct varid_control *order, int from_zero);

/* In a forked child: the same methods at the same places, in a file of its own. wanted: else there is none any more. */
DIM_HIDDEN void dim_table_fork(int wanted);

/* log.c: a line per event. */
extern DIM_HIDDEN int dim_log_on;

/* path: what comes before the pid; "": no lines. */
DIM_HIDDEN void dim_log_to(const char *path);
DIM_HIDDEN int dim_log_line(enum dim_event event, varid_u64 address); /* 0: it is lost */
DIM_HIDDEN void dim_log_fork(void);

#endif
