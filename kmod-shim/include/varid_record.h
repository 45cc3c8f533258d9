/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the shim is told about a process, and what it hands over with a sample.
 * The Rust mirror (src/abi.rs) is checked against this file by a test.
 */
#ifndef VARID_RECORD_H
#define VARID_RECORD_H

#include "varid_tunnel.h"

#define VARID_MAX_FRAMES 512 /* of compiled code half as many: each takes two entries */
#define VARID_MAX_KERNEL 64
#define VARID_MAX_LINKS 48 /* frame links outside of the slices */
#define VARID_MAX_FOLLOWED 128 /* frame pointers, inside of the slices or not */
#define VARID_BEYOND 2048 /* bytes of stack from the first of these links on */
#define VARID_STACK_SLICE 4096  /* bytes of stack for --stack vertical, where managed frames are not on it */
#define VARID_STACK_REACH 16384 /* and at most so many to reach the first managed frame, or the end of a thread without any */
#define VARID_STACK_FULL 53248 /* for --stack full: a perf record is at most 64 KiB */
#define VARID_PAGE 4096
#define VARID_RED_ZONE 128

/* The registers of a record, in this order; what an unwinder needs. */
#define VARID_REGS 16
enum varid_x86_reg {
	VARID_X86_RBX, VARID_X86_RBP, VARID_X86_R9, VARID_X86_R11, VARID_X86_R12, VARID_X86_R13,
	VARID_X86_R14, VARID_X86_R15, VARID_X86_RSP, VARID_X86_RIP, VARID_X86_COUNT,
};
enum varid_i386_reg {
	VARID_I386_EDX, VARID_I386_EBX, VARID_I386_EBP, VARID_I386_ESI, VARID_I386_EDI,
	VARID_I386_ESP, VARID_I386_EIP, VARID_I386_COUNT,
};
enum varid_arm64_reg {
	VARID_ARM64_X19, /* ... X30 = X19 + 11 */
	VARID_ARM64_SP = 12, VARID_ARM64_PC, VARID_ARM64_COUNT,
};
enum varid_arm_reg {
	VARID_ARM_R4, /* ... R11 = R4 + 7 */
	VARID_ARM_LR = 8, VARID_ARM_SP, VARID_ARM_PC, VARID_ARM_COUNT,
};

/* An address without what lies above it: the tag that a processor ignores (arm64). */
#define VARID_ADDRESS(word) ((word) & ((1ull << 56) - 1))

/* varid_target.flags */
#define VARID_TARGET_READY 1u      /* layout, body and rules are valid */
#define VARID_TARGET_FOLLOW 2u     /* children are admitted until the daemon knows them */
#define VARID_TARGET_KEEP_RAW 4u   /* let the kernel's own sample through, too */
#define VARID_TARGET_FULL_STACK 8u /* copy the whole stack with every sample */
#define VARID_TARGET_NO_STACK 16u  /* leaves only: no frames but the first, no stack */
#define VARID_TARGET_NAMESPACED 32u /* its threads know themselves by ids of a pid namespace */
#define VARID_TARGET_IGNORE 64u    /* known and not wanted, whoever its parent is */

/* The kinds of rules that the shim can walk. */
#define VARID_ALL_RULES                                                                \
	(VARID_RULE_BIT(VARID_RULE_LIST) | VARID_RULE_BIT(VARID_RULE_SHADOW) |         \
	 VARID_RULE_BIT(VARID_RULE_SAVE_AREA) | VARID_RULE_BIT(VARID_RULE_AT_SP) |     \
	 VARID_RULE_BIT(VARID_RULE_SIZED) | VARID_RULE_BIT(VARID_RULE_CODE_INFO))

/* The body of an interpreter loop: where the registers of a rule are valid. end 0: the rule has none. */
struct varid_body {
	varid_u64 start;
	varid_u64 end;
};

/*
 * How a frame of an AT_SP rule is left while the ip is in a stretch of the rule's code, as the unwind information of that
 * code says. The stretch ends where the next state begins.
 */
struct varid_state {
	varid_u32 start;    /* bytes behind the rule's code_start */
	varid_u8 reg;       /* index in a record's regs: leads to the CFA */
	varid_u8 flags;     /* VARID_STATE_* */
	varid_s16 cfa_word; /* from reg to the CFA, as in struct varid_rule */
	varid_s16 cfa_bias;
	varid_u16 reserved;
};

/* varid_state.flags. What is not saved is still in its register. */
#define VARID_STATE_KNOWN 1u       /* else nothing leads to the caller */
#define VARID_STATE_HAS_PC 2u      /* the frame is complete: its method is at sp, its bytecode pc in the rule's reg_pc */
#define VARID_STATE_SAVED_PC 4u    /* the caller's reg_pc is where the rule says */
#define VARID_STATE_SAVED_FRAME 8u /* so is the caller's reg_frame */
#define VARID_STATE_SAVED_RETURN 16u /* and the return address */

#define VARID_MAX_STATES 256

/* The states of one rule's code, sorted by start. */
struct varid_states {
	varid_u32 count;
	varid_u32 reserved;
	struct varid_state states[VARID_MAX_STATES];
};

/* What the shim knows of a process: keyed by tgid (of the initial pid namespace). */
struct varid_target {
	struct varid_layout layout; /* register numbers already replaced by indices of a record's regs */
	struct varid_body body[VARID_MAX_RULES]; /* of the rule with the same index */
	varid_u32 flags;
	varid_u32 rules;            /* VARID_RULE_BIT of each kind in the layout */
	varid_u32 states;           /* slot of the quick rule's varid_states, counted from 1; 0: it has none */
	varid_u32 reserved;
};

/* varid_record.flags */
#define VARID_IN_KERNEL 1u          /* ip is the kernel's */
#define VARID_IN_BODY 2u            /* the user ip is in the loop's body: frames[0] comes from registers */
#define VARID_NO_BASE 4u            /* the thread has no base: not one of the VM's, or not yet */
#define VARID_TORN 8u               /* frames end early: a read failed or contradicted another */
#define VARID_FRAMES_TRUNCATED 16u  /* more frames than VARID_MAX_FRAMES */
#define VARID_STACK_TRUNCATED 32u   /* the slice ends before the stretch it should cover */
#define VARID_NOT_READY 64u         /* no layout for this process (yet) */
#define VARID_INHERITED 128u        /* admitted as a target's child */
#define VARID_NO_WALK 256u          /* this source cannot read frames at the sample: walk the slice */
#define VARID_COMPAT 512u           /* a 32-bit process of a 64-bit kernel: regs are its own machine's */
#define VARID_INNER 1024u           /* the quick frames that come first are the innermost ones, if unwinding leads to them */
#define VARID_LINKED_ONLY 2048u     /* only linked frames and noted ones were walked: those of other rules are in the copy of the stack */
#define VARID_INTERRUPTED 4096u     /* a signal's handler runs on an alternate stack: frames are those of the code that the signal interrupted */

/* varid_frame.flags */
#define VARID_FRAME_QUICK 1ull    /* compiled or native method: addr is its native frame, no pc */
#define VARID_FRAME_OUTERMOST 2ull /* last of its fragment: native code called it */
#define VARID_FRAME_RELATIVE 4ull  /* pc counts bytes from the method's first instruction */
#define VARID_FRAME_EXPORTED 8ull  /* pc may be an earlier one of the method, or nothing: the method tells */
#define VARID_FRAME_COMPILED 16ull /* compiled method: pc is the return address in its code; 0: an interpreter's frame, whose callers are not known */
#define VARID_FRAME_PAIR (VARID_FRAME_RELATIVE | VARID_FRAME_EXPORTED | VARID_FRAME_COMPILED) /* both method and pc are needed */

/* A frame as the walker finds it. */
struct varid_frame {
	varid_u64 addr;   /* of the frame; 0 if the layout has none */
	varid_u64 method; /* the VM's method pointer; 0 if the pc says it all */
	varid_u64 pc;     /* absolute bytecode pc, unless flags say otherwise */
	varid_u64 flags;
};

/*
 * A frame as it stands in a record: its flags lie above its address. Of a PAIR a
 * second entry follows, whose `what` is the pc; its `addr` is 0.
 */
#define VARID_FRAME_FLAGS_SHIFT 56
struct varid_packed_frame {
	varid_u64 addr;
	varid_u64 what; /* pc; the method of a QUICK frame or a PAIR */
};

/*
 * The two words to which a frame pointer leads, outside of a record's slices: the caller's frame pointer, and the return address. The caller
 * may lie beyond the end of a slice, or on another stack.
 */
struct varid_frame_link {
	varid_u64 at;
	varid_u64 caller_fp;
	varid_u64 return_address;
};

/* Followed by packed frames, innermost first; kernel addresses, leaf first; stack bytes; bytes of the interrupted stack; frame links, innermost first; bytes from the first link on. */
struct varid_record {
	varid_u64 time;   /* CLOCK_MONOTONIC, ns */
	varid_u32 pid;
	varid_u32 tid;
	varid_u32 cpu;
	varid_u32 flags;
	varid_u64 period;
	varid_u64 ip;     /* of the interrupted instruction, kernel or user */
	varid_u64 stack_addr;
	varid_u32 stack_len; /* bytes */
	varid_u16 frames; /* struct varid_packed_frame */
	varid_u16 kernel;
	varid_u64 regs[VARID_REGS]; /* user registers at the kernel's door */
	/* VARID_INTERRUPTED: a second slice, of the stack that the signal interrupted; else 0. */
	varid_u64 interrupted_addr;
	varid_u32 interrupted_len; /* bytes */
	/* Pages that were not in memory, whose bytes are zeros: bit n is the page n of a slice, counted from the one that it begins in. */
	varid_u16 stack_holes;
	varid_u16 interrupted_holes;
	varid_u32 links; /* struct varid_frame_link */
	varid_u32 beyond; /* bytes from the first link on */
};

/* Counters kept by the shim, an array per CPU. */
enum varid_counter {
	VARID_COUNT_SAMPLES,    /* overflows of targets; of waits: those whose stacks were captured */
	VARID_COUNT_NO_SPACE,   /* records that found no room in the ring */
	VARID_COUNT_WAITS,      /* how often a target's thread has left its CPU */
	VARID_COUNT_NO_THREAD,  /* threads for which the map of waits had no room */
	VARID_COUNTERS,
};

/* What a thread waits for while it does not run. */
#define VARID_BLOCKED 0u  /* something that wakes it */
#define VARID_RUNNABLE 1u /* a CPU */
#define VARID_WAIT_KINDS 2

/* A thread's waits: keyed by tid (of the initial pid namespace). Times are in nanoseconds. */
struct varid_wait {
	varid_u64 since;                      /* CLOCK_MONOTONIC: it left its CPU; 0: it runs */
	varid_u64 woken;                      /* it became runnable; 0: it is blocked */
	varid_u64 unsampled[VARID_WAIT_KINDS]; /* waits that count for its next sample */
	varid_u64 captured[VARID_WAIT_KINDS]; /* those of them whose stacks were captured, each times its stride */
	varid_u64 ip;                         /* of user code, as it left its CPU; 0: not known */
	varid_u64 window;                     /* the stretch of time in which switches are counted */
	varid_u32 pid;
	varid_u32 switches;
	varid_u32 stride;                     /* one of so many waits is captured; 0: this one was not */
	varid_u32 assumed;                    /* it was not seen to leave its CPU */
};

/* varid_wait_end.flags; no flags of a record */
#define VARID_WAIT_END (1u << 16)      /* it is no record but this */
#define VARID_WAIT_CAPTURED (1u << 17) /* the thread's last record has the stacks */
#define VARID_THREAD_ENDS (1u << 18)

/* A wait is over that has a sample. It begins as a record does. */
struct varid_wait_end {
	varid_u64 time;
	varid_u32 pid;
	varid_u32 tid;
	varid_u32 cpu;
	varid_u32 flags;
	varid_u64 ip;                    /* varid_wait.ip */
	varid_u64 ns[VARID_WAIT_KINDS]; /* what the sample stands for; 0: there is none of this kind */
};

#endif
