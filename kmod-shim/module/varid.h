/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The internal interfaces between the files of the module. */
#ifndef VARID_MODULE_INTERNAL_H
#define VARID_MODULE_INTERNAL_H

#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>

#include "varid_module.h"

/* targets.c: the processes that may be sampled. */

struct varid_node {
	struct hlist_node link;
	struct rcu_head rcu;
	u32 pid;
	struct varid_target target;
};

/* Limits the processes that a session may sample to all, or those of its opener. */
struct varid_rights {
	bool all;
	const struct cred *opener;
};

struct varid_targets {
	DECLARE_HASHTABLE(nodes, 8);
	struct varid_node __rcu *everyone;
	u32 count;
	struct varid_rights rights;
};

void varid_targets_init(struct varid_targets *targets);
void varid_targets_free(struct varid_targets *targets);
int varid_targets_set(struct varid_targets *targets, const struct varid_module_target *set);
int varid_targets_forget(struct varid_targets *targets, u32 pid);
const struct varid_target *varid_target_of_current(struct varid_targets *targets, u32 *flags);

/* tunnel.c: memory that a process shares with the kernel. */

struct varid_tunnel_memory {
	struct list_head link;
	struct mm_struct *mm; /* only for comparison */
	void *memory;
	u64 start; /* address in the process; 0: no longer known */
	u64 size;
};

int varid_tunnel_map(struct varid_tunnel_memory **mapped, struct vm_area_struct *vma);
void varid_tunnel_free(struct varid_tunnel_memory *tunnel);
const struct varid_tunnel_memory *varid_tunnel_of(const struct mm_struct *mm);

/* sample.c: the overflow handler. */

struct varid_scratch;

/* The ring of one CPU. Only overflows on that CPU write it. They can nest once. */
struct varid_ring {
	struct varid_session *session;
	struct varid_module_ring *control; /* the data is in the pages after it */
	u8 *data;
	u32 size;
	bool busy;
	u64 head;
	struct irq_work wake;
	struct varid_scratch *scratch;
	unsigned long samples, no_space, throttled;
};

struct varid_event {
	struct varid_ring *ring;
	struct perf_event *event;
	u32 id;
	u32 flags;
	bool clock;  /* a software clock, whose period is the one that it was last armed with */
	u64 armed;
	s64 jitter;  /* random part of the period */
	u32 random;
};

struct varid_session {
	struct mutex lock; /* protects everything that overflows do not change */
	wait_queue_head_t readers;
	struct varid_targets targets;
	u32 ring_pages;
	u32 raw_stack;
	u64 raw_regs;
	struct varid_ring **rings; /* by CPU; NULL: no counter there */
	struct varid_event **counters;
	u32 counter_count;
};

size_t varid_scratch_size(void);
void varid_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs);
bool varid_ring_is_filling(const struct varid_ring *ring);

#endif
