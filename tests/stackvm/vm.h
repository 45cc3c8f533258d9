/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What do the parts of stackvm share? Offsets for the assembler, structures for C.
 */
#ifndef STACKVM_H
#define STACKVM_H

/* In struct method. */
#define METHOD_CODE 0
#define METHOD_INVOKE 8
#define METHOD_RUN 16
#define METHOD_FLAGS 24
#define METHOD_FRAME 28

/* In struct thread. */
#define THREAD_NOTE 16
#define THREAD_LINK 24
#define THREAD_METHODS 32

#define METHOD_NATIVE 0x100

/* Bytes below a frame's CFA. */
#define SAVED_RETURN 8
#define SAVED_FRAME 24
#define SAVED_PC 40
#define SAVED_ALL 48
/* From a frame's method, which is at sp, to the word that leads to its CFA, and to its registers. */
#define FRAME_CFA_WORD 16
#define FRAME_REGISTERS 24
/* Bytes of a native method's frame. */
#define NATIVE_FRAME 80

#define LOOPS 20
#define OPCODES 12

#define OP_INVOKE 8

#ifndef __ASSEMBLER__
#include <stdint.h>

/* A method at run time; what is at a frame's stack pointer points to one. */
struct method {
	const uint8_t *code; /* in the mapped program; null: it is native */
	void (*invoke)(void);
	void *run;           /* its interpreter loop, or its C function */
	uint32_t flags;
	uint32_t frame;      /* bytes below what is saved: a multiple of 16 */
	const char *name;
	uint32_t code_size;
};

struct thread {
	int tid;
	int reserved;
	uint64_t result;
	void *note; /* stack pointer of the innermost native method's frame; null while bytecode runs */
	void *link; /* the next outer { note, link }, of what called back from native code */
	struct method **methods;
	uint64_t padding[8]; /* a reader takes more than one field at once */
};

/* interpreter.S */
uint64_t sv_invoke(struct thread *thread, struct method *method, uint64_t a, uint64_t b);
void sv_enter(void);
void sv_enter_native(void);
extern const char sv_code_start[], sv_body_start[], sv_code_end[];
extern void *const sv_loops[LOOPS + 1];                /* where each loop starts, and where the last one ends */
extern void *const sv_next[LOOPS];                     /* where each loop goes on to its next instruction */
extern void *const sv_handlers[LOOPS][OPCODES];

/* program.c */
extern struct method *methods[256];
extern unsigned method_count;
extern const uint8_t *program;
extern uint64_t program_size;

/* Maps the program; one that makes no sense ends the process. */
void load_program(const char *path);

/* natives.c */
extern __thread struct thread *sv_self __attribute__((tls_model("initial-exec")));
void *native_function(const char *name);
#endif
#endif
