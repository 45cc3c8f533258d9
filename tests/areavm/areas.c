/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What does areavm say of frames that are kept as Dalvik keeps them?
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "areas.h"

#define STACK_SIZE (256 * 1024)
#define MAX_THREADS 2

/* The VM's objects, as far as a reader follows them. */
struct dex_file {
	int filler;
	uintptr_t begin;
};

struct class {
	const char *descriptor;
	struct { struct dex_file *file; } *dex;
};

struct area_method {
	struct class *class;
	uint64_t insns;
	const char *name;
	uint32_t proto;
};

__thread struct area_thread *area_self;

static struct area_method methods[METHODS];
static struct dex_file file;
static struct class class;

const struct area_method *area_method(unsigned n)
{
	return &methods[n];
}

/* What threads have left behind, the first of it first: with one more than there are threads, each that attaches again gets another's. */
static struct area_thread *left[MAX_THREADS + 1];
static unsigned are_left;
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;

static struct area_thread *new_thread(void)
{
	struct area_thread *thread = calloc(1, sizeof(*thread));

	if (!thread || !(thread->end = calloc(1, STACK_SIZE)))
		abort();
	thread->end += STACK_SIZE;
	return thread;
}

void area_thread_start(void)
{
	pthread_mutex_lock(&left_lock);
	if (!are_left)
		left[are_left++] = new_thread();
	area_self = left[0];
	memmove(left, left + 1, --are_left * sizeof(*left));
	pthread_mutex_unlock(&left_lock);
	area_self->tid = (int)syscall(SYS_gettid);
	dim_thread_base((uintptr_t)area_self);
}

void area_thread_exit(void)
{
	dim_thread_base_gone((uintptr_t)area_self);
	pthread_mutex_lock(&left_lock);
	if (!are_left)
		left[are_left++] = new_thread();
	left[are_left++] = area_self;
	pthread_mutex_unlock(&left_lock);
	area_self = NULL;
}

static void after_fork(void)
{
	if (!area_self)
		return;
	area_self->tid = (int)syscall(SYS_gettid);
	dim_thread_base((uintptr_t)area_self);
}

void area_layout(struct varid_layout *layout, uintptr_t dex)
{
	static struct { struct dex_file *file; } dvm_dex = { &file };
	struct varid_rule *rule = &layout->rules[0];
	unsigned n;

	file.begin = dex;
	class.dex = (void *)&dvm_dex;
	for (n = 0; n < METHODS; n++) {
		methods[n].class = &class;
		methods[n].insns = method_insns[n];
	}
	layout->rule_count = 1;
	layout->quick_rule = VARID_NO_RULE;
	rule->kind = VARID_RULE_SAVE_AREA;
	layout->word = layout->reference = sizeof(void *);
#if defined(__x86_64__)
	rule->reg_pc = 12;
	rule->reg_frame = 13;
#elif defined(__i386__)
	rule->reg_pc = 6;
	rule->reg_frame = 7;
#elif defined(__aarch64__)
	rule->reg_pc = 20;
	rule->reg_frame = 21;
#else
	rule->reg_pc = 4;
	rule->reg_frame = 5;
#endif
	rule->frame_bias = -(varid_s16)sizeof(struct area);
	layout->tls_offset = (varid_s64)((long)&area_self - (long)dim_thread_pointer());
	layout->thread_tid = offsetof(struct area_thread, tid);
	layout->thread_fragment = offsetof(struct area_thread, frame);
	rule->frame_link = offsetof(struct area, caller);
	rule->frame_caller_pc = offsetof(struct area, caller_pc);
	rule->frame_method = offsetof(struct area, method);
	rule->frame_pc = offsetof(struct area, exported_pc);
	layout->method_class = offsetof(struct area_method, class);
	layout->method_code = offsetof(struct area_method, insns);
	layout->method_name = offsetof(struct area_method, name);
	layout->method_proto = offsetof(struct area_method, proto);
	layout->class_descriptor = offsetof(struct class, descriptor);
	layout->class_dex_cache = offsetof(struct class, dex);
	layout->dex_cache_dex_file = 0;
	layout->dex_file_begin = offsetof(struct dex_file, begin);
	pthread_atfork(NULL, NULL, after_fork);
}
