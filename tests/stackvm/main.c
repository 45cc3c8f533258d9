/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How is stackvm started? A VM for tests whose frames have their method at the stack pointer and no links, and whose
 * bytecode is a format of its own.
 *
 *   stackvm PROGRAM ROUNDS [LOG]    ROUNDS on each of two threads; LOG gets the truth about addresses
 *
 * The log says which native code is which method's, so that the interrupted ip, and return addresses by rbp, tell
 * which methods run, whatever varid makes of sp, r12 and r15. A line each, addresses in hex:
 *
 *   code START END, body START END                  what is interpreter, and where its registers are valid
 *   program START END
 *   method INDEX NAME POINTER CODE-START CODE-END   as in the program; CODE 0: native
 *   loop INDEX START END NEXT                       the native code that runs this method; from NEXT on its pc moves
 *   handler INDEX OPCODE START                      where this loop executes an opcode
 *   done                                            all is said
 */
#define _GNU_SOURCE
#include <elf.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dim.h"
#include "vm.h"

#define DEPTH 9 /* of calls below a round's first */

__thread struct thread *sv_self;

static unsigned long rounds;

_Static_assert(offsetof(struct method, code) == METHOD_CODE, "as in the assembler");
_Static_assert(offsetof(struct method, invoke) == METHOD_INVOKE, "as in the assembler");
_Static_assert(offsetof(struct method, run) == METHOD_RUN, "as in the assembler");
_Static_assert(offsetof(struct method, flags) == METHOD_FLAGS, "as in the assembler");
_Static_assert(offsetof(struct method, frame) == METHOD_FRAME, "as in the assembler");
_Static_assert(offsetof(struct thread, note) == THREAD_NOTE, "as in the assembler");
_Static_assert(offsetof(struct thread, link) == THREAD_LINK, "as in the assembler");
_Static_assert(offsetof(struct thread, methods) == THREAD_METHODS, "as in the assembler");

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void describe(const char *path)
{
	const struct varid_layout layout = {
		.machine = EM_X86_64,
		.word = 8,
		.reference = 8,
		.rule_count = 1,
		.quick_rule = 0,
		.flags = VARID_LAYOUT_ON_NATIVE_STACK,
		.tls_offset = (varid_s64)((long)&sv_self - (long)dim_thread_pointer()),
		.thread_tid = offsetof(struct thread, tid),
		.thread_fragment = offsetof(struct thread, note),
		.fragment_quick = 0,
		.fragment_link = offsetof(struct thread, link) - offsetof(struct thread, note),
		.fragment_top = VARID_NO_FIELD,
		.method_class = VARID_NO_FIELD,
		.method_code = VARID_NO_FIELD,
		.method_index = VARID_NO_FIELD,
		.class_dex_cache = VARID_NO_FIELD,
		.dex_cache_dex_file = VARID_NO_FIELD,
		.dex_file_begin = VARID_NO_FIELD,
		.rules = { {
			.kind = VARID_RULE_AT_SP,
			.reg_pc = 12,
			.reg_frame = 15,
			.cfa_word = FRAME_CFA_WORD - FRAME_REGISTERS,
			.cfa_bias = SAVED_ALL,
			.saved_pc = SAVED_PC,
			.saved_frame = SAVED_FRAME,
			.saved_return = SAVED_RETURN,
			.method_flags = offsetof(struct method, flags),
			.native_flag = METHOD_NATIVE,
			.native_size = NATIVE_FRAME,
			.code_start = (uintptr_t)sv_code_start,
			.code_end = (uintptr_t)sv_code_end,
		} },
	};
	const struct varid_range ranges[] = {
		{ (uintptr_t)sv_code_start, (uintptr_t)sv_body_start, VARID_RANGE_INTERPRETER, 0 },
		{ (uintptr_t)sv_body_start, (uintptr_t)sv_code_end, VARID_RANGE_BODY, 0 },
	};

	if (!dim_init(VARID_VM_OTHER, &layout, ranges, 2, getenv("XDG_RUNTIME_DIR")))
		fprintf(stderr, "stackvm: no tunnel\n");
	dim_code(VARID_CODE_IMAGE, (uintptr_t)program, program_size, path, 0);
}

static void tell_truth(const char *path)
{
	FILE *log = fopen(path, "we");
	unsigned i, op;

	if (!log)
		fail(path);
	fprintf(log, "code %lx %lx\n", (long)sv_code_start, (long)sv_code_end);
	fprintf(log, "body %lx %lx\n", (long)sv_body_start, (long)sv_code_end);
	fprintf(log, "program %lx %lx\n", (long)program, (long)(program + program_size));
	for (i = 0; i < method_count; i++)
		fprintf(log, "method %u %s %lx %lx %lx\n", i, methods[i]->name, (long)methods[i],
			(long)methods[i]->code, (long)(methods[i]->code + methods[i]->code_size));
	for (i = 0; i < LOOPS; i++) {
		fprintf(log, "loop %u %lx %lx %lx\n", i, (long)sv_loops[i], (long)sv_loops[i + 1], (long)sv_next[i]);
		for (op = 0; op < OPCODES; op++)
			fprintf(log, "handler %u %u %lx\n", i, op, (long)sv_handlers[i][op]);
	}
	fprintf(log, "done\n");
	if (fclose(log))
		fail(path);
}

static void *run(void *result)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	uint64_t *out = result;
	unsigned long i;

	if (!thread)
		abort();
	thread->tid = (int)syscall(SYS_gettid);
	thread->methods = methods;
	sv_self = thread;
	dim_thread_base((uintptr_t)thread);
	for (i = 0; i < rounds; i++)
		*out = sv_invoke(thread, methods[(*out + i) % LOOPS], *out, DEPTH);
	dim_thread_base_gone((uintptr_t)thread);
	sv_self = NULL;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, second = 2;
	pthread_t other;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: stackvm PROGRAM ROUNDS [LOG]\n");
		return 2;
	}
	load_program(argv[1]);
	rounds = strtoul(argv[2], NULL, 0);
	describe(argv[1]);
	if (argc == 4)
		tell_truth(argv[3]);
	if (pthread_create(&other, NULL, run, &second))
		fail("pthread_create");
	run(&first);
	pthread_join(other, NULL);
	printf("result %016llx\n", (unsigned long long)(first ^ second));
	return 0;
}
