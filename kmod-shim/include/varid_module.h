/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The interface between varid and the kernel module, over /dev/varid. A test checks the Rust mirror
 * (src/module/abi.rs) against this file.
 *
 * An open file is a session or a tunnel. The first VARID_MODULE_SESSION makes it a session, with
 * counters, targets, and a ring for each CPU. mmap before that makes it a tunnel: memory of a
 * process that the kernel can read at an overflow without touching a user page.
 */
#ifndef VARID_MODULE_H
#define VARID_MODULE_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif
#include "varid_record.h"

#define VARID_MODULE_DEVICE "/dev/varid"
#define VARID_MODULE_VERSION 7

#define VARID_MODULE_MAX_TARGETS 16384
#define VARID_MODULE_MAX_COUNTERS 4096    /* of a session: number of events times number of CPUs */
#define VARID_MODULE_MAX_RING_PAGES 16384 /* of a ring's data, a power of two */
#define VARID_MODULE_MAX_TUNNEL 1048576   /* bytes of a tunnel */

struct varid_module_session {
	varid_u32 version;    /* in: VARID_MODULE_VERSION; others are refused with EPROTO */
	varid_u32 ring_pages; /* in: pages of data in each CPU's ring, a power of two */
	varid_u32 raw_stack;  /* in: bytes of stack with each raw sample, a multiple of 8 */
	varid_u32 machine;    /* out: ELF e_machine of the kernel, which defines the meaning of regs */
	varid_u64 raw_regs;   /* in: perf's bit mask of the registers in each raw sample */
};

/* varid_module_counter.flags */
#define VARID_COUNTER_FREQUENCY 1u      /* rate is samples per second, not a period */
#define VARID_COUNTER_EXCLUDE_USER 2u
#define VARID_COUNTER_EXCLUDE_KERNEL 4u
#define VARID_COUNTER_JITTER 8u         /* each period is drawn from rate * 15/16 ... rate * 17/16 */

/* An event of one CPU, opened disabled. */
struct varid_module_counter {
	varid_u32 cpu;
	varid_u32 type;    /* as in struct perf_event_attr, up to rate */
	varid_u64 config;
	varid_u64 config1;
	varid_u64 config2;
	varid_u64 rate;
	varid_u32 flags;
	varid_u32 id;      /* out: consecutive, from 0 */
};

struct varid_module_target {
	varid_u32 pid; /* tgid in the initial pid namespace; 0: all processes without an entry of their own */
	varid_u32 reserved;
	struct varid_target target;
};

/* The value of a counter. running < enabled: the hardware was shared with other events. */
struct varid_module_value {
	varid_u32 id; /* in */
	varid_u32 reserved;
	varid_u64 value;
	varid_u64 enabled; /* ns */
	varid_u64 running; /* ns */
};

/* Sums over all CPUs since the session began. */
struct varid_module_counts {
	varid_u64 samples;   /* overflows in targets */
	varid_u64 no_space;  /* records lost for lack of space in their ring */
	varid_u64 throttled; /* number of times that a counter was throttled */
};

#define VARID_MODULE_SESSION _IOWR('V', 1, struct varid_module_session)
#define VARID_MODULE_COUNTER _IOWR('V', 2, struct varid_module_counter)
#define VARID_MODULE_TARGET _IOW('V', 3, struct varid_module_target)
#define VARID_MODULE_FORGET _IO('V', 4)  /* a pid, by value; ENOENT if it is unknown */
#define VARID_MODULE_ENABLE _IO('V', 5)  /* all counters */
#define VARID_MODULE_DISABLE _IO('V', 6)
#define VARID_MODULE_VALUE _IOWR('V', 7, struct varid_module_value)
#define VARID_MODULE_COUNTS _IOR('V', 8, struct varid_module_counts)

/*
 * The first page of a ring; ring_pages pages of data follow. The ring of CPU n is mapped at offset n
 * * (1 + ring_pages) * page size, once it has a counter. The layout is perf's: records with a
 * perf_event_header, multiples of 8 bytes, that wrap around.
 */
struct varid_module_ring {
	varid_u64 reserved[128];
	varid_u64 head; /* written by the kernel; both count bytes since the start */
	varid_u64 tail; /* written by the reader */
};

/*
 * perf_event_header.type: a struct varid_record follows, and misc is the counter's id. Records of
 * type PERF_RECORD_SAMPLE are raw samples (VARID_TARGET_KEEP_RAW) of the same overflow: identifier
 * (zero), ip, tid, time, cpu, period, callchain, user registers, and a copy of the stack if
 * raw_stack is not zero.
 */
#define VARID_MODULE_RECORD 0x56415249u

#endif
