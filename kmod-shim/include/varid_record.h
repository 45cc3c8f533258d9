/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The target that the shim gets for a process, and the record that it writes for a sample. A test checks the Rust mirror (src/abi.rs) against
 * this file.
 */
#ifndef VARID_RECORD_H
#define VARID_RECORD_H

#include "varid_tunnel.h"

#define VARID_MAX_FRAMES 512 /* of compiled code half as many, because each takes two entries */
#define VARID_MAX_KERNEL 64
#define VARID_MAX_LINKS 48 /* frame links outside of the slices */
#define VARID_MAX_FOLLOWED 128 /* frame pointers, inside of the slices or not */
#define VARID_BEYOND 4096 /* bytes of stack from the first of these links on */
#define VARID_STACK_SLICE 4096  /* bytes of stack for --stack vertical, if managed frames are not on it */
#define VARID_STACK_REACH 16384 /* the maximum to reach the first managed frame, or the end of a thread without any */
#define VARID_STACK_FULL 53248 /* for --stack full: a perf record is at most 64 KiB */
#define VARID_PAGE 4096
#define VARID_RED_ZONE 128

/* The registers of a record, in this order: those that an unwinder needs. */
#define VARID_REGS 16
enum varid_x86_reg {
	VARID_X86_RAX, VARID_X86_RBX, VARID_X86_RBP, VARID_X86_R9, VARID_X86_R11, VARID_X86_R12,
	VARID_X86_R13, VARID_X86_R14, VARID_X86_R15, VARID_X86_RSP, VARID_X86_RIP, VARID_X86_COUNT,
};
enum varid_i386_reg {
	VARID_I386_EDX, VARID_I386_EBX, VARID_I386_EBP, VARID_I386_ESI, VARID_I386_EDI,
	VARID_I386_ESP, VARID_I386_EIP, VARID_I386_COUNT,
};
enum varid_arm64_reg {
	VARID_ARM64_X19, /* ... X30 = X19 + 11 */
	VARID_ARM64_X12 = 12, VARID_ARM64_X13, VARID_ARM64_SP, VARID_ARM64_PC, VARID_ARM64_COUNT,
};
enum varid_arm_reg {
	VARID_ARM_R4, /* ... R11 = R4 + 7 */
	VARID_ARM_LR = 8, VARID_ARM_SP, VARID_ARM_PC, VARID_ARM_COUNT,
};

/* An address without the bits above it: the tag that the processor ignores (arm64). */
#define VARID_ADDRESS(word) ((word) & ((1ull << 56) - 1))

/* varid_target.flags */
#define VARID_TARGET_READY 1u      /* layout, body and rules are valid */
#define VARID_TARGET_FOLLOW 2u     /* children are admitted until the daemon knows them */
#define VARID_TARGET_KEEP_RAW 4u   /* keep the kernel's own sample, too */
#define VARID_TARGET_FULL_STACK 8u /* copy the whole stack with every sample */
#define VARID_TARGET_NO_STACK 16u  /* only the leaf: the innermost frame, no stack */
#define VARID_TARGET_NAMESPACED 32u /* its threads have other ids in their own pid namespace */
#define VARID_TARGET_IGNORE 64u    /* not sampled, whatever its parent is */
#define VARID_TARGET_JAVA 128u     /* it has a varid_jvm */

/* The kinds of rules that the shim can walk. */
#define VARID_ALL_RULES                                                                \
	(VARID_RULE_BIT(VARID_RULE_LIST) | VARID_RULE_BIT(VARID_RULE_SHADOW) |         \
	 VARID_RULE_BIT(VARID_RULE_SAVE_AREA) | VARID_RULE_BIT(VARID_RULE_AT_SP) |     \
	 VARID_RULE_BIT(VARID_RULE_SIZED) | VARID_RULE_BIT(VARID_RULE_CODE_INFO))

/* The body of an interpreter loop, in which the registers of a rule are valid. end 0: the rule has none. */
struct varid_body {
	varid_u64 start;
	varid_u64 end;
};

/*
 * How to leave a frame of an AT_SP rule while the ip is in a range of the rule's code, according to the unwind information of that code. The
 * range ends where the next state starts.
 */
struct varid_state {
	varid_u32 start;    /* bytes from the rule's code_start */
	varid_u8 reg;       /* index in a record's regs: leads to the CFA */
	varid_u8 flags;     /* VARID_STATE_* */
	varid_s16 cfa_word; /* from reg to the CFA, as in struct varid_rule */
	varid_s16 cfa_bias;
	varid_u16 reserved;
};

/* varid_state.flags. Values that are not saved are still in their registers. */
#define VARID_STATE_KNOWN 1u       /* if unset, the caller cannot be found */
#define VARID_STATE_HAS_PC 2u      /* the frame is complete: its method is at sp, and its bytecode pc in the rule's reg_pc */
#define VARID_STATE_SAVED_PC 4u    /* the caller's reg_pc is saved where the rule defines */
#define VARID_STATE_SAVED_FRAME 8u /* the same for the caller's reg_frame */
#define VARID_STATE_SAVED_RETURN 16u /* the same for the return address */

#define VARID_MAX_STATES 256

/* The states of one rule's code, sorted by start. */
struct varid_states {
	varid_u32 count;
	varid_u32 reserved;
	struct varid_state states[VARID_MAX_STATES];
};

/* A process's target, by tgid in the initial pid namespace. */
struct varid_target {
	struct varid_layout layout; /* register numbers are replaced by indices of a record's regs */
	struct varid_body body[VARID_MAX_RULES]; /* of the rule with the same index */
	varid_u32 flags;
	varid_u32 rules;            /* VARID_RULE_BIT of each kind in the layout */
	varid_u32 states;           /* slot of the quick rule's varid_states, counted from 1; 0: none */
	varid_u32 reserved;
};

#define VARID_CODE_HEAPS 4   /* HotSpot has one or three; a power of two */
#define VARID_BLOB_FIELDS 48 /* bytes of a code blob that contain the fields below */
#define VARID_ANCHOR 40      /* and of a JavaFrameAnchor */

/* Memory that HotSpot has reserved for code. */
struct varid_code_heap {
	varid_u64 start; /* start == end: there is none */
	varid_u64 end;
	varid_u64 segments; /* address of the segment map's first byte */
	varid_u32 log2_segment;
	varid_u32 reserved;
};

/*
 * What leads from a code address of HotSpot to the blob that has it, and from a call from the VM to the Java frame that
 * called the VM. Offsets are in bytes.
 */
struct varid_jvm {
	struct varid_code_heap heaps[VARID_CODE_HEAPS];
	varid_u64 code_start; /* of the first heap */
	varid_u64 code_end;   /* of the last one */
	varid_u64 interpreter_start;
	varid_u64 interpreter_end;
	varid_u64 call_returns; /* the return address of calls from the VM */
	varid_u16 block_header;  /* from a heap's block to its code blob */
	varid_u16 blob_fields;   /* in a code blob: the first of the next three */
	varid_u16 blob_size;     /* from there: bytes, 32 bits */
	varid_u16 blob_frame;    /* from there: words of its frames, 32 bits */
	varid_u16 blob_complete; /* from there: bytes of code until a frame is made, 32 or 16 bits */
	varid_u16 blob_code;     /* in a code blob: the first instruction, a pointer or an offset of 32 bits */
	varid_u16 compile_id;    /* in a compiled method: 32 bits */
	varid_u16 frame_wrapper; /* below the frame pointer of a call from the VM: pointer to a JavaCallWrapper */
	varid_u16 wrapper_anchor; /* in a JavaCallWrapper: a JavaFrameAnchor */
	varid_u16 anchor_sp;     /* in an anchor */
	varid_u16 anchor_pc;
	varid_u16 anchor_fp;
	varid_u16 thread_anchor; /* in a JavaThread: a JavaFrameAnchor */
	varid_u8 has_code_offset;    /* blob_code is an offset */
	varid_u8 has_short_complete; /* blob_complete has 16 bits */
	varid_u8 reserved[4];
};

/* varid_record.flags */
#define VARID_IN_KERNEL 1u          /* ip is in the kernel */
#define VARID_IN_BODY 2u            /* the user ip is in the loop's body: frames[0] comes from registers */
#define VARID_NO_BASE 4u            /* the thread has no base: it is not, or not yet, one of the VM's */
#define VARID_TORN 8u               /* frames end early: a read failed or was inconsistent */
#define VARID_FRAMES_TRUNCATED 16u  /* more frames than VARID_MAX_FRAMES */
#define VARID_STACK_TRUNCATED 32u   /* the slice does not cover all that it should */
#define VARID_NOT_READY 64u         /* no layout for this process (yet) */
#define VARID_INHERITED 128u        /* admitted as a target's child */
#define VARID_NO_WALK 256u          /* this source cannot read frames at the sample: walk the slice */
#define VARID_COMPAT 512u           /* a 32-bit process of a 64-bit kernel: regs are its own machine's */
#define VARID_INNER 1024u           /* the first quick frames are the innermost ones, if unwinding confirms them */
#define VARID_LINKED_ONLY 2048u     /* only linked and noted frames were walked: frames of other rules are in the copy of the stack */
#define VARID_INTERRUPTED 4096u     /* a signal handler runs on an alternate stack: frames are those of the interrupted code */

/* varid_frame.flags */
#define VARID_FRAME_QUICK 1ull    /* compiled or native method: addr is its native frame, no pc */
#define VARID_FRAME_OUTERMOST 2ull /* last of its fragment: called by native code */
#define VARID_FRAME_RELATIVE 4ull  /* pc is in bytes from the method's first instruction */
#define VARID_FRAME_EXPORTED 8ull  /* pc is the last exported one: it may be outdated, or not of this method */
#define VARID_FRAME_COMPILED 16ull /* compiled method: pc is the return address in its code; 0: an interpreter's frame, whose callers are not known */
#define VARID_FRAME_PAIR (VARID_FRAME_RELATIVE | VARID_FRAME_EXPORTED | VARID_FRAME_COMPILED) /* both method and pc are needed */

/* A frame as the walker finds it. */
struct varid_frame {
	varid_u64 addr;   /* of the frame; 0 if the layout has no address */
	varid_u64 method; /* the VM's method pointer; 0 if the pc suffices */
	varid_u64 pc;     /* absolute bytecode pc, unless flags say otherwise */
	varid_u64 flags;
};

/*
 * A frame as packed in a record: its flags are above its address. A PAIR has a second entry, whose `what` is the pc and whose `addr` is 0.
 */
#define VARID_FRAME_FLAGS_SHIFT 56
struct varid_packed_frame {
	varid_u64 addr;
	varid_u64 what; /* pc; the method of a QUICK frame or a PAIR */
};

/*
 * The two words that a frame pointer leads to, outside of a record's slices: the caller's frame pointer, and the return address. The caller
 * may be beyond the end of a slice, or on another stack.
 */
struct varid_frame_link {
	varid_u64 at;
	varid_u64 caller_fp;
	varid_u64 return_address;
};

/*
 * The words of the stack by which a frame of HotSpot's code is left, and its code. at 0: only the code is known.
 *
 * sender 0: code is a code blob, and detail its compilation (low half; meaningless if it is no compiled method) and its
 * size. Without a code it is a call from the VM. Otherwise the frame is the interpreter's, and they are the method and
 * the bytecode pc, which lie below the link, as the caller's stack pointer does.
 *
 * sender VARID_JAVA_RESUMES: no frame. The frames from the stack pointer at to the stack pointer code are native ones,
 * which a Java frame has called: returns is its return address, and caller_fp its frame pointer.
 */
#define VARID_JAVA_RESUMES 1
#define VARID_JAVA_SENDER 8
#define VARID_JAVA_METHOD 24
#define VARID_JAVA_BCP 64
struct varid_java_frame {
	varid_u32 at;     /* of the next two words, in bytes from the record's stack_addr */
	varid_u32 sender; /* bytes from there to the stack pointer of an interpreter frame's caller */
	varid_u64 caller_fp;
	varid_u64 returns;
	varid_u64 code;
	varid_u64 detail;
};

#define VARID_MAX_JAVA 1024

/*
 * Followed by packed frames, innermost first; frames of HotSpot's code, innermost first; kernel addresses, leaf first;
 * stack bytes; bytes of the interrupted stack; frame links, innermost first; bytes from the first link on.
 */
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
	varid_u64 regs[VARID_REGS]; /* user registers at entry to the kernel */
	varid_u64 allocated; /* at a place that allocates in HotSpot: the object's Klass; else 0 */
	/* VARID_INTERRUPTED: a second slice, of the interrupted stack; else 0. */
	varid_u64 interrupted_addr;
	varid_u32 interrupted_len; /* bytes */
	/* Pages that were not in memory; their bytes are zeros. Bit n is page n of a slice, counted from the page in which it starts. */
	varid_u16 stack_holes;
	varid_u16 interrupted_holes;
	varid_u32 links; /* struct varid_frame_link */
	varid_u32 beyond; /* bytes from the first link on */
	varid_u32 java; /* struct varid_java_frame */
	varid_u32 reserved;
};

/* Counters kept by the shim, an array per CPU. */
enum varid_counter {
	VARID_COUNT_SAMPLES,    /* overflows in targets; for waits: those with captured stacks */
	VARID_COUNT_NO_SPACE,   /* records lost for lack of space in the ring */
	VARID_COUNT_WAITS,      /* number of times that a target's thread has left its CPU */
	VARID_COUNT_NO_THREAD,  /* threads that were not added because the map of waits was full */
	VARID_COUNTERS,
};

/* The kind of a wait: what the thread waits for. */
#define VARID_BLOCKED 0u  /* an event that wakes it */
#define VARID_RUNNABLE 1u /* a CPU */
#define VARID_WAIT_KINDS 2

/* A thread's waits, by tid in the initial pid namespace. Times are in nanoseconds. */
struct varid_wait {
	varid_u64 since;                      /* CLOCK_MONOTONIC time at which it left its CPU; 0: it runs */
	varid_u64 woken;                      /* time at which it became runnable; 0: it is blocked */
	varid_u64 unsampled[VARID_WAIT_KINDS]; /* waits that count towards its next sample */
	varid_u64 captured[VARID_WAIT_KINDS]; /* those of them with captured stacks, each multiplied by its stride */
	varid_u64 ip;                         /* user ip when it left its CPU; 0: unknown */
	varid_u64 window;                     /* window of time in which switches are counted */
	varid_u32 pid;
	varid_u32 switches;
	varid_u32 stride;                     /* this wait stands for so many; 0: it was not captured */
	varid_u32 assumed;                    /* it was not seen leaving its CPU */
};

/* varid_wait_end.flags, which differ from those of a record */
#define VARID_WAIT_END (1u << 16)      /* distinguishes this structure from a record */
#define VARID_WAIT_CAPTURED (1u << 17) /* the thread's last record has the stacks */
#define VARID_THREAD_ENDS (1u << 18)

/* A finished wait with a sample. It starts like a record. */
struct varid_wait_end {
	varid_u64 time;
	varid_u32 pid;
	varid_u32 tid;
	varid_u32 cpu;
	varid_u32 flags;
	varid_u64 ip;                    /* varid_wait.ip */
	varid_u64 ns[VARID_WAIT_KINDS]; /* nanoseconds that the sample stands for; 0: no sample of this kind */
};

#endif
