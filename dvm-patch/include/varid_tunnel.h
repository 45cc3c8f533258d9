/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/*
 * The tunnel's ABI: how a VM describes itself to varid.
 *
 * The VM maps a sealed memfd named "varid-tunnel" (or, without memfd, a deleted file "varid-tunnel.PID"), MAP_SHARED, and fills it in. varid
 * finds the mapping in the process's memory map, at any time, and copies from it; it never maps it. The structures here are the whole
 * contract: little endian, no unnamed padding, offsets in bytes from the start of the structure that contains them. A test checks the Rust
 * mirror against this file. Data that changes with every call (a shadow stack) is private memory of the process, so that a forked child gets
 * its own copy.
 */
#ifndef VARID_TUNNEL_H
#define VARID_TUNNEL_H

#ifndef __KERNEL__
#ifndef __bpf__
#include <stdint.h>
typedef uint8_t varid_u8;
typedef uint16_t varid_u16;
typedef int16_t varid_s16;
typedef uint32_t varid_u32;
typedef uint64_t varid_u64;
typedef int64_t varid_s64;
#else
typedef unsigned char varid_u8;
typedef unsigned short varid_u16;
typedef short varid_s16;
typedef unsigned int varid_u32;
typedef unsigned long long varid_u64;
typedef long long varid_s64;
#endif
#else
#include <linux/types.h>
typedef u8 varid_u8;
typedef u16 varid_u16;
typedef s16 varid_s16;
typedef u32 varid_u32;
typedef u64 varid_u64;
typedef s64 varid_s64;
#endif

#define VARID_TUNNEL_NAME "varid-tunnel"
#define VARID_TUNNEL_MAGIC "VARIDTUN" /* eight bytes, no terminator */
#define VARID_TUNNEL_VERSION 2

/* A field of a layout that this VM does not have. */
#define VARID_NO_FIELD 0xffff
#define VARID_NO_REG 0xff
#define VARID_NO_RULE 0xff
#define VARID_NO_WORD (-32768) /* cfa_word: the register itself leads to the CFA */

enum varid_vm {
	VARID_VM_DALVIK = 1,
	VARID_VM_ART = 2,
	VARID_VM_HOTSPOT = 3,
	VARID_VM_OTHER = 4,
};

/* The rule that the frames of a stretch of the stack follow. */
enum varid_rule_kind {
	VARID_RULE_LIST = 1,      /* linked frames: ART's ShadowFrame */
	VARID_RULE_SHADOW = 2,    /* records that the VM writes: struct varid_shadow is the per-thread base */
	VARID_RULE_SAVE_AREA = 3, /* an area below each frame pointer: Dalvik */
	VARID_RULE_AT_SP = 4,     /* on the native stack, the method at sp: ART's nterp */
	VARID_RULE_SIZED = 5,     /* on the native stack, sp plus a size from the code's header: ART's compiled methods */
	VARID_RULE_FP = 6,        /* reserved: at the frame pointer: HotSpot's interpreter */
	VARID_RULE_CODE_INFO = 7, /* as SIZED: compiled methods of ART 14 */
};

#define VARID_RULE_BIT(kind) (1u << (kind))
#define VARID_MAX_RULES 4
#define VARID_SPECIAL_METHODS 6

/*
 * Where a frame of one kind has its method, its pc and the saved state of its caller. All kinds share one structure. A field that the kind
 * does not use is zero.
 *
 * LIST: a frame is { link to the caller, method, exported bytecode pc, first instruction, bytecode index } at frame_*. The bytecode pc is
 * frame_pc if not zero, else frame_insns + 2 * frame_index. If frame_insns is zero (pushed and not yet entered, or run by the switch
 * interpreter), the method's own first instruction is used instead. In the loop's body reg_frame + frame_bias is the innermost frame.
 *
 * SAVE_AREA: a frame pointer's area starts -frame_bias bytes below it and has that size: { frame pointer of the caller, method, pc of the
 * caller, exported pc } at frame_*. An area without a method breaks the list: native code made the call across it.
 *
 * AT_SP: a frame is identified by its stack pointer, where its method is. Its CFA (where its caller's frame starts) is reg_frame + cfa_bias
 * or, if cfa_word is not VARID_NO_WORD, the word at (reg_frame + cfa_word) + cfa_bias. At fixed distances below the CFA the frame saves its
 * caller's pc and frame registers, and its return address. The stretch ends at a null method, or at a return address outside of (code_start,
 * code_end]. While the ip is in a BODY range of the rule, it starts with the leaf's registers. A stretch that starts with a note
 * (fragment_quick) starts with a frame whose size depends on its method: one of the special methods that special_methods leads to (the frame
 * is left out, because it belongs to no method of the app), or one with a bit of native_flag in the word at method_flags. If a VM does not
 * clear fragment_quick when the noted frame returns, its code needs unwind information, by which varid recognises outdated notes: the walk
 * ignores a note below sp and accepts one above sp.
 *
 * SIZED: a frame of compiled code. Its method is at its stack pointer, and its return address is the last word below its CFA, which is the
 * stack pointer plus the frame's size. The eight bytes before the code are the distance back to the description of the code, and the size of
 * the code. The second number of the description is the frame's size in units of two words. A method's code starts where method_entry leads.
 * Code that is compiled at run time is in the map of the code cache, from the start of the code to its method: *special_methods + code_cache
 * leads to the cache, which has the map at code_cache_map. At code_cache_counts it has a byte that is not 0 while code is collected. 24 and
 * 40 bytes after that, two words count the compiled code and the collections: by them varid knows whether code is still the one that was
 * sampled. A stretch ends at a null method.
 *
 * CODE_INFO: the same, but four bytes before the code contain the distance back to its description, whose second number is the size of the
 * code and whose third is that of the frame. Three words, 24 bytes after code_cache_counts, count the compiled code, and the word after them
 * counts the collections.
 *
 * For both, the number after the frame's size has a bit for each register that the frame saves, with the return address as the highest. They
 * are stored in this order downwards from the CFA. varid fills in which bits are an AT_SP rule's registers (saved_pc, saved_frame).
 */
struct varid_rule {
	varid_u8 kind;            /* enum varid_rule_kind */
	varid_u8 reg_pc;          /* DWARF number: absolute bytecode pc, in the loop's body */
	varid_u8 reg_frame;       /* DWARF number: leads to the frame (AT_SP: to its CFA), in the loop's body */
	varid_u8 special_count;   /* AT_SP: at most VARID_SPECIAL_METHODS */
	varid_s16 frame_bias;     /* LIST, SAVE_AREA: frame = reg_frame + bias */
	varid_u16 frame_link;     /* LIST, SAVE_AREA: in a frame */
	varid_u16 frame_method;
	varid_u16 frame_pc;
	varid_u16 frame_insns;    /* LIST */
	varid_u16 frame_index;    /* LIST: 32 bits, in 16-bit code units */
	varid_u16 frame_caller_pc; /* SAVE_AREA; 0 there: the caller is native */
	varid_s16 cfa_word;       /* AT_SP: from reg_frame to the word that leads to the CFA */
	varid_s16 cfa_bias;       /* AT_SP: from that word, or from reg_frame, to the CFA */
	varid_u16 saved_pc;       /* AT_SP: bytes below the CFA: the caller's reg_pc. SIZED, CODE_INFO: its bit, filled in by varid */
	varid_u16 saved_frame;    /* the same for the caller's reg_frame */
	varid_u16 saved_return;   /* AT_SP: the return address */
	varid_u16 method_flags;   /* AT_SP: in a method: 32 bits */
	varid_u16 native_size;    /* AT_SP: bytes of a native method's frame */
	varid_u32 native_flag;    /* AT_SP: bits of method_flags that mark a native method; 0: there are none */
	varid_u16 special_sizes[VARID_SPECIAL_METHODS]; /* AT_SP: bytes of the special methods' frames */
	varid_u64 special_methods; /* AT_SP: address of a word that leads to special_count pointers to methods */
	varid_u64 code_start;     /* AT_SP: code whose frames follow this rule. SIZED: all compiled code, filled in by varid */
	varid_u64 code_end;
	varid_u16 method_entry;   /* SIZED: in a method: pointer to its code. AT_SP: the same, to recognise proxies' frames; 0: not known */
	varid_u16 code_cache;     /* SIZED: after the word that special_methods leads to: pointer to the code cache; 0: there is none */
	varid_u16 code_cache_map; /* SIZED: in the code cache: libstdc++'s std::map from code to method */
	varid_u16 code_cache_counts; /* SIZED: in the code cache: see above; 0: unknown */
};

/* Frames (a shadow record's sp) are addresses on the thread's native stack. */
#define VARID_LAYOUT_ON_NATIVE_STACK 1u
/*
 * method_code is the address of a code item, with the lowest bit set for one of a compact dex file. The method has no bytecode if it has a
 * bit of native_flag of the rule quick_rule, or if the address is 0 apart from its lowest bits.
 */
#define VARID_LAYOUT_CODE_ADDRESS 2u

/*
 * How to walk this VM's frames, as data.
 *
 * thread base := word at (thread pointer + tls_offset)
 *
 * A stack consists of stretches, each of which follows one rule. LIST and AT_SP may be mixed: the thread holds its innermost link record
 * ("fragment") at thread_fragment, which is { quick frame, link to the next outer fragment, top frame } at fragment_*. Frames from
 * fragment_quick on follow the rule quick_rule, and frames from fragment_top on the rule LIST, which is rules[0] if it exists. If quick_rule
 * is VARID_NO_RULE, there is one frame at fragment_quick, with its method at sp. If quick_rule is an AT_SP rule and a SIZED or CODE_INFO rule
 * follows it, frames with return addresses outside of AT_SP's code follow the latter, in any order with those of AT_SP.
 *
 * SHADOW and SAVE_AREA must be the only rule of their layout. SAVE_AREA: the thread holds the innermost frame pointer at thread_fragment.
 */
struct varid_layout {
	varid_u16 machine;        /* ELF e_machine of the VM */
	varid_u8 word;            /* bytes of a pointer, 4 or 8 */
	varid_u8 reference;       /* bytes of a reference between heap objects */
	varid_u8 rule_count;      /* 1 ... VARID_MAX_RULES */
	varid_u8 quick_rule;      /* index in rules, or VARID_NO_RULE */
	varid_u16 thread_tid;     /* 32 bits: the tid that owns this base */
	varid_u32 flags;
	varid_u16 thread_fragment;
	varid_u16 fragment_quick;
	varid_s64 tls_offset;
	varid_u16 fragment_link;
	varid_u16 fragment_top;

	/* From a method to its place in a dex file. */
	varid_u16 method_class;       /* reference */
	varid_u16 method_code;        /* 32 bits: code item's offset in the dex file, 0: none; a pointer with LAYOUT_CODE_ADDRESS */
	varid_u16 method_index;       /* 32 bits: index in the dex file's method_ids */
	varid_u16 class_dex_cache;    /* reference */
	varid_u16 dex_cache_dex_file; /* pointer */
	varid_u16 dex_file_begin;     /* pointer */

	/* SAVE_AREA only. method_code is a pointer there, to the first instruction. */
	varid_u16 method_name;      /* pointer to the name, in the dex file */
	varid_u16 method_proto;     /* 32 bits: index in the dex file's proto_ids */
	varid_u16 class_descriptor; /* pointer to the descriptor, in the dex file */
	varid_u16 reserved;

	struct varid_rule rules[VARID_MAX_RULES];
};

/* The purpose of the code in a range. */
enum varid_range_kind {
	VARID_RANGE_BODY = 1,        /* interpreter loop: its rule's reg_pc and reg_frame are valid */
	VARID_RANGE_INTERPRETER = 2, /* interpreter loop, registers not valid (prologue, epilogue, switch) */
	VARID_RANGE_BRIDGE = 3,      /* call trampolines: reports do not show them as a separate row below another frame */
	VARID_RANGE_VM = 4,          /* other code of the VM */
	VARID_RANGE_QUICK = 5,       /* interpreter loop with native frames: method at [sp], reg_pc is valid */
	VARID_RANGE_HANDLERS = 6,    /* BODY, as 256 handlers of one size: opcode k's is the kth; reg_pc may already be at its successor */
	VARID_RANGE_TRACES = 7,      /* where the VM's compiler places its traces */
};

struct varid_range {
	varid_u64 start; /* address in the process */
	varid_u64 end;
	varid_u32 kind;
	varid_u32 rule; /* index in the layout's rules: whose registers are valid in BODY and HANDLERS */
};

enum varid_code_kind {
	VARID_CODE_DEX = 1,   /* a dex file as the VM executes it */
	VARID_CODE_IMAGE = 2, /* a bytecode image of the VM's own format */
};

#define VARID_CODE_BOOT 1u /* boot class path: the framework's, not the app's */

#define VARID_CODE_LOCATION 216

struct varid_code {
	varid_u64 start; /* address in the process */
	varid_u64 size;  /* 0: the slot is free */
	varid_u64 time;  /* CLOCK_MONOTONIC ns when it was published */
	varid_u32 kind;
	varid_u32 flags;
	varid_u8 location[VARID_CODE_LOCATION]; /* the VM's name for it, zero-terminated */
};

struct varid_thread {
	varid_u64 base; /* the value that tls_offset leads to */
	varid_u32 tid;  /* 0: the slot is free */
	varid_u32 reserved;
};

/* Code that the VM compiled from a stretch of bytecode. It ends where the next one starts, so either all are listed or none. */
struct varid_trace {
	varid_u64 start; /* address in the process */
	varid_u64 pc;    /* of the stretch's first instruction; 0: the slot is free */
};

/* A table in the tunnel: the first count of capacity entries are valid. */
struct varid_part {
	varid_u32 offset;
	varid_u32 entry_size;
	varid_u32 capacity;
	varid_u32 count;
};

/* A file of the VM's beside the tunnel. The VM has it open and mapped. */
struct varid_file {
	varid_u64 address; /* in the process; 0: there is none */
	varid_u64 size;
	varid_u32 fd; /* in the process */
	varid_u32 reserved;
};

/*
 * The start of the tunnel. A writer makes generation odd, changes data, and makes it even again. A reader that has seen two different
 * generations, or an odd one, reads again.
 */
struct varid_tunnel {
	varid_u8 magic[8];
	varid_u32 version;
	varid_u32 header_size; /* sizeof(struct varid_tunnel) */
	varid_u64 size;        /* of the memfd */
	varid_u64 time;        /* CLOCK_MONOTONIC ns when it was made */
	varid_u32 vm;
	varid_u32 pid;         /* owner, in its own pid namespace; a different pid means an inherited mapping */
	varid_u32 generation;
	varid_u32 tactic;      /* what the VM does at a call, enum varid_tactic */
	struct varid_layout layout;
	struct varid_part ranges;
	struct varid_part codes;
	struct varid_part threads;
	struct varid_part traces;
	struct varid_file control; /* struct varid_control: varid's orders */
	struct varid_file calls;   /* struct varid_calls: the counts */
};

enum varid_tactic {
	VARID_LOAD_FROM_DEX = 0, /* nothing at a call */
	VARID_METHOD_INVOKE = 1, /* invokes, returns and unwinds are counted */
};

#define VARID_CONTROL_NAME "varid-control"
#define VARID_CONTROL_MAGIC "VARIDCTL"
#define VARID_CONTROL_VERSION 1
#define VARID_CONTROL_LOG 216
#define VARID_FILTERS 32
#define VARID_FILTER_SIZE 120

/* The first characters of "package.Class.method", zero-terminated. */
struct varid_filter {
	varid_u8 prefix[VARID_FILTER_SIZE];
};

/*
 * varid's orders to the VM, in a separate file of one page. The VM creates it, and varid writes it from generation on; generation is as in
 * the tunnel. The orders are valid while varid has a write lock (fcntl) on the file: when varid dies, the VM returns to its default tactic.
 */
struct varid_control {
	varid_u8 magic[8];
	varid_u32 version; /* VARID_CONTROL_VERSION */
	varid_u32 size;    /* sizeof(struct varid_control) */
	varid_u32 generation;
	varid_u32 tactic;
	varid_u64 session; /* a change resets the counts */
	varid_u32 filter_count; /* 0: every method is counted */
	varid_u32 reserved;
	varid_u8 log[VARID_CONTROL_LOG]; /* path of the event log, to which "." + pid is appended; "": none */
	struct varid_filter filters[VARID_FILTERS];
};

#define VARID_CALLS_NAME "varid-calls"
#define VARID_CALLS_MAGIC "VARIDCAL"
#define VARID_CALLS_VERSION 1
#define VARID_CALLS_ENTRIES 4096 /* bytes from the file's start to the first entry */
/*
 * A method's remapped address is VARID_REMAP_FIRST + the index of its entry. It is below the first page that a process can map on any
 * machine, so no code or data has this address.
 */
#define VARID_REMAP_FIRST 0x1000u
#define VARID_REMAP_END 0x10000u
#define VARID_MAX_CALLS (VARID_REMAP_END - VARID_REMAP_FIRST)

#define VARID_CALL_LEFT_OUT 1u /* excluded by the filter: nothing is counted */
#define VARID_NO_INDEX 0xffffffffu
#define VARID_RETIRED (~0ull) /* the VM has removed the method */

/* The number of calls and exits of a method in this process. Entries are never moved, and counts only increase. */
struct varid_call {
	varid_u64 method; /* the VM's pointer, or VARID_RETIRED */
	varid_u64 insns;  /* address of its first instruction in a mapped dex file; 0: it has none */
	varid_u64 dex;    /* start of its dex file, 0: unknown */
	varid_u32 index;  /* in the dex file's method_ids, VARID_NO_INDEX: unknown */
	varid_u32 flags;
	varid_u64 invokes;
	varid_u64 returns;
	varid_u64 unwinds; /* left by an exception */
	varid_u64 reserved;
};

/* The start of the calls' file. The entries follow at VARID_CALLS_ENTRIES. */
struct varid_calls {
	varid_u8 magic[8];
	varid_u32 version; /* VARID_CALLS_VERSION */
	varid_u32 entry_size;
	varid_u32 capacity;
	varid_u32 count;
	varid_u64 session;   /* the session that reset the counts; 0: they started with the VM */
	varid_u64 uncounted; /* events of methods without an entry, for lack of space */
	varid_u64 unlogged;  /* events that could not be written to the log */
	varid_u32 refused;   /* number of orders that were invalid, or that the VM could not carry out */
	varid_u32 reserved;
};

/*
 * SHADOW: one per thread, in private memory. To call: write records[depth], then
 * depth + 1. To return or unwind: write depth. Only the owning thread writes.
 */
struct varid_shadow_record {
	varid_u64 method; /* address of the method's first instruction in a mapped dex file */
	varid_u64 sp;     /* native stack pointer at entry */
};

struct varid_shadow {
	varid_u32 tid;
	varid_u32 capacity; /* of records; deeper calls are counted in depth and not recorded */
	varid_u64 depth;
	struct varid_shadow_record records[];
};

#endif
