/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Dalvik's adapter to dim: describes the VM to varid. Compiled inside libdvm.
 *
 * The compiler computes the layout from the VM's own structures, so it is right for every version, machine
 * and build option. The code is C99 and C++98: apply.sh gives this file the suffix of the VM's other sources.
 */
#include "Dalvik.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "varid_dalvik.h"

#if defined(__arm__) || defined(__i386__) || defined(__x86_64__)

#ifdef __cplusplus
extern "C" {
#endif
#include "calls.h"
#include "dim.h"

/* The assembler interpreter's labels, under other names; null if it is not built in. */
#define LABEL(name, label) extern const char name[] __asm__(label) __attribute__((weak, visibility("hidden")))
LABEL(handlers_start, "dvmAsmInstructionStart");
LABEL(handlers_end, "dvmAsmInstructionEnd");
LABEL(sisters_start, "dvmAsmSisterStart");
LABEL(sisters_end, "dvmAsmSisterEnd");
LABEL(alt_start, "dvmAsmAltInstructionStart");
LABEL(alt_end, "dvmAsmAltInstructionEnd");
/* x86 of 4.x: there the labels above are tables. */
LABEL(code_start, "dvmAsmInstructionStartCode");
LABEL(code_end, "dvmAsmInstructionEndCode");
LABEL(alt_code_start, "dvmAsmAltInstructionStartCode");
LABEL(alt_code_end, "dvmAsmAltInstructionEndCode");
#ifdef __cplusplus
}
#endif

/* The folder of the tunnel's file: the kernels of these Androids have no memfd. */
#define VARID_DALVIK_FOLDER "/data/local/tmp/varid"

enum {
	HANDLERS = 256,
	HANDLER_SIZE = 64,
	MAX_BODIES = 3,
	SEEN = 64,
};

/*
 * The most recently seen dex files: start and size. A file that was evicted is published again, which dim
 * ignores.
 */
static struct {
	pthread_mutex_t lock;
	struct {
		unsigned long start;
		unsigned long size;
	} dex[SEEN];
} seen = { PTHREAD_MUTEX_INITIALIZER, { { 0, 0 } } };

#ifndef __BIONIC__
static __thread const struct Thread *self __attribute__((tls_model("initial-exec")));
#endif

/* Returns the offset of a thread's Thread from the thread pointer. */
static varid_s64 tls_offset(void)
{
#ifdef __BIONIC__
	/* Up to Android 4.4 a key is the index of its slot, and the slots start at the thread pointer. */
	return (varid_s64)gDvm.pthreadKeySelf * (varid_s64)sizeof(void *);
#else
	return (varid_s64)((long)&self - (long)dim_thread_pointer());
#endif
}

/* Sets the registers that hold the assembler interpreter's pc and frame. */
static void describe_registers(struct varid_layout *layout, struct varid_rule *rule)
{
	rule->reg_pc = VARID_NO_REG;
	rule->reg_frame = VARID_NO_REG;
#if defined(__arm__)
	layout->machine = 40;
	rule->reg_pc = 4;
	rule->reg_frame = 5;
#elif defined(__i386__)
	layout->machine = 3;
#ifdef __cplusplus
	rule->reg_pc = 6;    /* esi */
	rule->reg_frame = 7; /* edi */
#else
	rule->reg_pc = 2;    /* edx */
	rule->reg_frame = 6; /* esi */
#endif
#else
	layout->machine = 62; /* no assembler interpreter */
#endif
}

/* offsetof requires what C++98 calls plain old data, but the VM's objects have base classes. */
#define OFFSET(type, field) ((varid_u16)((unsigned long)&((type *)16)->field - 16))

static void describe(struct varid_layout *layout)
{
	struct varid_rule *rule = &layout->rules[0];

	memset(layout, 0, sizeof(*layout));
	layout->rule_count = 1;
	layout->quick_rule = VARID_NO_RULE;
	rule->kind = VARID_RULE_SAVE_AREA;
	layout->word = sizeof(void *);
	layout->reference = sizeof(void *);
	describe_registers(layout, rule);
	rule->frame_bias = (varid_s16)-(int)sizeof(StackSaveArea);
	layout->tls_offset = tls_offset();
	layout->thread_tid = OFFSET(Thread, systemTid);
#ifdef __cplusplus
	layout->thread_fragment = OFFSET(Thread, interpSave.curFrame);
#else
	layout->thread_fragment = OFFSET(Thread, curFrame);
#endif
	layout->fragment_quick = VARID_NO_FIELD;
	layout->fragment_link = VARID_NO_FIELD;
	layout->fragment_top = VARID_NO_FIELD;
	rule->frame_link = OFFSET(StackSaveArea, prevFrame);
	rule->frame_method = OFFSET(StackSaveArea, method);
	rule->frame_caller_pc = OFFSET(StackSaveArea, savedPc);
	rule->frame_pc = OFFSET(StackSaveArea, xtra.currentPc);
	layout->method_class = OFFSET(Method, clazz);
	layout->method_code = OFFSET(Method, insns);
	layout->method_index = VARID_NO_FIELD;
	layout->method_name = OFFSET(Method, name);
	layout->method_proto = OFFSET(Method, prototype.protoIdx);
	layout->class_descriptor = OFFSET(ClassObject, descriptor);
	layout->class_dex_cache = OFFSET(ClassObject, pDvmDex);
	layout->dex_cache_dex_file = OFFSET(DvmDex, pDexFile);
	layout->dex_file_begin = OFFSET(DexFile, baseAddr);
}

/* Adds the code between two labels. 4.0 has 512 opcodes, so its code is not of kind HANDLERS. */
static varid_u32 add_body(struct varid_range *ranges, varid_u32 count, const char *start, const char *end)
{
	if (!start || end <= start)
		return count;
	memset(&ranges[count], 0, sizeof(ranges[count]));
	ranges[count].start = (unsigned long)start;
	ranges[count].end = (unsigned long)end;
	ranges[count].kind = end - start == HANDLERS * HANDLER_SIZE ? VARID_RANGE_HANDLERS : VARID_RANGE_BODY;
	return count + 1;
}

static varid_u32 find_bodies(struct varid_range *ranges)
{
	varid_u32 count = 0;

	if (code_start) {
		count = add_body(ranges, count, code_start, code_end);
		return add_body(ranges, count, alt_code_start, alt_code_end);
	}
	count = add_body(ranges, count, handlers_start, handlers_end);
	count = add_body(ranges, count, sisters_start, sisters_end);
	return add_body(ranges, count, alt_start, alt_end);
}

/* dim ignores a second start. */
static void publish(void)
{
	struct varid_layout layout;
	struct varid_range ranges[MAX_BODIES];
	const char *folder = getenv("VARID_TUNNEL_FOLDER");

	describe(&layout);
	dim_init(VARID_VM_DALVIK, &layout, ranges, find_bodies(ranges), folder ? folder : VARID_DALVIK_FOLDER);
}

/* Finds the name of the file that is mapped at the address, or "". */
static void name_mapping(unsigned long address, char *name, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	name[0] = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;
		int at = 0;

		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at) < 2 || !at)
			continue;
		if (address < start || address >= end)
			continue;
		line[strcspn(line, "\n")] = 0;
		strncpy(name, line + at, size - 1);
		name[size - 1] = 0;
		break;
	}
	if (maps)
		fclose(maps);
}

/* Returns 1 if this dex file was not seen recently, and remembers it. */
static int is_new(unsigned long start, unsigned long size)
{
	const unsigned long slot = start / 4096 % SEEN;
	int found;

	pthread_mutex_lock(&seen.lock);
	found = seen.dex[slot].start == start && seen.dex[slot].size == size;
	seen.dex[slot].start = start;
	seen.dex[slot].size = size;
	pthread_mutex_unlock(&seen.lock);
	return !found;
}

#ifdef __cplusplus
/* Called by dim at the first call of a method. */
static void describe_method(varid_u64 pointer, struct dim_method *out)
{
	const Method *method = (const Method *)(unsigned long)pointer;
	const DvmDex *dex = method->clazz->pDvmDex;

	out->descriptor = method->clazz->descriptor;
	out->name = method->name;
	out->index = VARID_NO_INDEX;
	if (!dex)
		return;
	out->dex = (unsigned long)dex->pHeader;
	if ((unsigned long)method->insns - (unsigned long)dex->pHeader < dex->pHeader->fileSize)
		out->insns = (unsigned long)method->insns;
}

/*
 * Starts or stops events like the VM's own method trace, but without its buffer and without ending that
 * trace.
 */
static int switched(int on)
{
	__sync_fetch_and_add(&gDvm.activeProfilers, on ? 1 : -1);
	if (on)
		dvmEnableAllSubMode(kSubModeMethodTrace);
	else if (!gDvm.methodTrace.traceEnabled)
		dvmDisableAllSubMode(kSubModeMethodTrace);
#ifdef WITH_JIT
	dvmCompilerUpdateGlobalState();
#endif
	return 1;
}

/* Polls varid's control page four times a second. */
static void *poll_calls(void *unused)
{
	const struct timespec pause = { 0, 250000000 };

	for (;;) {
		dim_calls_poll();
		if (dim_calls_on()) /* the VM's own trace may have ended, which clears the mode of all threads */
			dvmEnableAllSubMode(kSubModeMethodTrace);
		nanosleep(&pause, NULL);
	}
	return unused;
}

/* In a process that an app forks: it is not a Zygote's child and has no polling thread. */
static void forked(void)
{
	dim_calls_wanted = 0;
}
#endif

/*
 * Only from 4.0 on: earlier versions do not separate the switch of the VM's trace from the trace itself. A
 * Zygote has no polling thread, but its children have.
 */
static void count_calls(void)
{
#ifdef __cplusplus
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;

	dim_calls_init(describe_method, switched, getenv("VARID_TACTIC"), getenv("VARID_CALL_LOG"),
		       getenv("VARID_CALL_FILTERS"));
	pthread_atfork(NULL, NULL, forked);
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* The thread must not take the app's signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, &attributes, poll_calls, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
#endif
}

#ifdef __cplusplus
void varid_dalvik_thread_modes(struct Thread *thread)
{
	if (dim_calls_on())
		dvmEnableSubMode(thread, kSubModeMethodTrace);
}
#endif

int varid_dalvik_invoke(const struct Thread *thread, const struct Method *method, int action)
{
	(void)thread;
	if (dim_calls_on())
		dim_call((enum dim_event)(DIM_INVOKE + action), (unsigned long)method, 0);
	return !gDvm.methodTrace.traceEnabled;
}

void varid_dalvik_class_gone(const struct ClassObject *class_object)
{
	int i;

	if (!class_object)
		return;
	for (i = 0; i < class_object->directMethodCount; i++)
		dim_calls_method_gone((unsigned long)&class_object->directMethods[i]);
	for (i = 0; i < class_object->virtualMethodCount; i++)
		dim_calls_method_gone((unsigned long)&class_object->virtualMethods[i]);
}

void varid_dalvik_thread_start(const struct Thread *thread)
{
	publish();
#ifndef __BIONIC__
	self = thread;
#endif
	dim_thread_base((unsigned long)thread);
}

void varid_dalvik_thread_exit(const struct Thread *thread)
{
	dim_thread_base_gone((unsigned long)thread);
}

void varid_dalvik_running(void)
{
	dim_after_fork();
	dim_thread_base((unsigned long)dvmThreadSelf());
	count_calls();
}

void varid_dalvik_shutdown(void)
{
	dim_shutdown();
}

void varid_dalvik_class(const struct ClassObject *class_object)
{
	char name[VARID_CODE_LOCATION];
	unsigned long start;

	if (!class_object->pDvmDex)
		return;
	start = (unsigned long)class_object->pDvmDex->pHeader;
	if (!is_new(start, class_object->pDvmDex->pHeader->fileSize))
		return;
	name_mapping(start, name, sizeof(name));
	/* The loader of the boot class path is null. */
	dim_dex(start, class_object->pDvmDex->pHeader->fileSize, name, class_object->classLoader ? 0 : VARID_CODE_BOOT);
}

/* Publishes the code cache when the first code is compiled. */
static void publish_code_cache(void)
{
#ifdef WITH_JIT
	const unsigned long start = (unsigned long)gDvmJit.codeCache;
#ifdef CODE_CACHE_SIZE
	const unsigned long size = CODE_CACHE_SIZE;
#else
	const unsigned long size = gDvmJit.codeCacheSize;
#endif

	dim_traces(start, start + size);
#endif
}

void varid_dalvik_jit(const unsigned short *pc, const void *code)
{
	unsigned long start = (unsigned long)code;

#ifdef __arm__
	start &= ~1ul; /* the Thumb bit */
#endif
	publish_code_cache();
	dim_trace(start, (unsigned long)pc);
}

void varid_dalvik_jit_reset(void)
{
	dim_traces_gone();
}

#endif
