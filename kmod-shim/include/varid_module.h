/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What passes between varid and the kernel module, over /dev/varid.
 * The Rust mirror (src/module/abi.rs) is checked against this file by a test.
 *
 * An open file is one of two things. The first VARID_MODULE_SESSION makes it a session:
 * counters, targets, and a ring for each CPU. mmap without that makes it a tunnel: memory
 * of a process that the kernel reads at an overflow without touching a user page.
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
#define VARID_MODULE_VERSION 4

#define VARID_MODULE_MAX_TARGETS 16384
#define VARID_MODULE_MAX_COUNTERS 4096    /* of a session: events times CPUs */
#define VARID_MODULE_MAX_RING_PAGES 16384 /* of a ring's data, a power of two */
#define VARID_MODULE_MAX_TUNNEL 1048576   /* bytes of a tunnel */

struct varid_module_session {
	varid_u32 version;    /* in: VARID_MODULE_VERSION; another one is refused with EPROTO */
	varid_u32 ring_pages; /* in: pages of data in each CPU's ring, a power of two */
	varid_u32 raw_stack;  /* in: bytes of stack with each raw sample, a multiple of 8 */
	varid_u32 machine;    /* out: ELF e_machine of the kernel, which says what regs are */
	varid_u64 raw_regs;   /* in: perf's bits of the registers in each raw sample */
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
	varid_u32 id;      /* out: counts up from 0 */
};

struct varid_module_target {
	varid_u32 pid; /* tgid of the initial pid namespace; 0: whoever has no entry of its own */
	varid_u32 reserved;
	struct varid_target target;
};

/* What a counter has counted. running < enabled: it shared its hardware with others. */
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
	varid_u64 no_space;  /* records that found no room in their ring */
	varid_u64 throttled; /* times that a counter was stopped for coming too often */
};

#define VARID_MODULE_SESSION _IOWR('V', 1, struct varid_module_session)
#define VARID_MODULE_COUNTER _IOWR('V', 2, struct varid_module_counter)
#define VARID_MODULE_TARGET _IOW('V', 3, struct varid_module_target)
#define VARID_MODULE_FORGET _IO('V', 4)  /* a pid, by value; ENOENT if it was not known */
#define VARID_MODULE_ENABLE _IO('V', 5)  /* all counters */
#define VARID_MODULE_DISABLE _IO('V', 6)
#define VARID_MODULE_VALUE _IOWR('V', 7, struct varid_module_value)
#define VARID_MODULE_COUNTS _IOR('V', 8, struct varid_module_counts)

/*
 * The first page of a ring; ring_pages pages of data follow. The ring of CPU n is mapped at
 * offset n * (1 + ring_pages) * page size, once it has a counter. It is laid out as
 * perf's: records with a perf_event_header, multiples of 8 bytes, that wrap around.
 */
struct varid_module_ring {
	varid_u64 reserved[128];
	varid_u64 head; /* written by the kernel; both count bytes since the start */
	varid_u64 tail; /* written by the reader */
};

/*
 * perf_event_header.type: a struct varid_record follows, misc is the counter's id. Records
 * of type PERF_RECORD_SAMPLE are raw samples (VARID_TARGET_KEEP_RAW) of the same overflow:
 * identifier (zero), ip, tid, time, cpu, period, callchain, user registers, and
 * a copy of the stack if raw_stack is not zero.
 */
#define VARID_MODULE_RECORD 0x56415249u

#endif
