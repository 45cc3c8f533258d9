/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How is shadowvm started? An interpreter VM for tests, in which dim keeps a shadow stack.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "dim.h"
#include "vm.h"

#define MAX_WORKERS 256

static const char usage[] =
	"usage: shadowvm --dex FILE [--name PACKAGE] [--rounds N] [--threads N] [--records N]\n"
	"                [--fork] [--no-dim] [--hold DEPTH] [--quiet] [--counts] [--remap]\n"
	"                [--work STEPS] [--timed]\n"
	"  --rounds N    rounds of 10,000 calls each thread runs (default 1)\n"
	"  --threads N   threads beside the first one\n"
	"  --records N   of a thread's shadow stack (default 8192)\n"
	"  --fork        a forked child runs the same and prints its own result\n"
	"  --hold DEPTH  every thread stays in a chain of so many calls until standard input ends\n"
	"  --counts      prints how often each method was called, returned from and unwound\n"
	"  --remap       calls are recorded by their remapped addresses\n"
	"  --work STEPS  each call does so many steps of work, and nothing else than calls\n"
	"  --timed       says how many nanoseconds each round took, on standard error\n";

static struct {
	const char *dex;
	const char *name;
	unsigned long rounds, threads, records, hold;
	int fork, no_dim, quiet, counts, timed;
} options = { .rounds = 1, .records = DIM_DEFAULT_DEPTH };

static void fail(const char *what)
{
	fprintf(stderr, "shadowvm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (*end || end == text) {
		fprintf(stderr, "shadowvm: %s is no number\n", text);
		exit(2);
	}
	return value;
}

/* Takes the name of a package, as an app does that Zygote has forked. */
static void take_name(int argc, char **argv, const char *name)
{
	size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
	size_t length = strlen(name);
	const char *tail = length > 15 ? name + length - 15 : name;

	prctl(PR_SET_NAME, tail, 0, 0, 0);
	if (length >= room)
		length = room - 1;
	memset(argv[0], 0, room);
	memcpy(argv[0], name, length);
}

static const uint8_t *dex_start;

/* What dim asks of a method. */
static void describe_method(varid_u64 method, struct dim_method *out)
{
	static char names[METHODS][4];
	unsigned n;

	for (n = 0; n < METHODS; n++) {
		if (method_insns[n] != method)
			continue;
		memcpy(names[n], (char[4]){ 'm', (char)('0' + n / 10), (char)('0' + n % 10) }, 4);
		out->insns = method;
		out->dex = (uintptr_t)dex_start;
		out->index = method_indexes[n];
		out->descriptor = METHODS_CLASS;
		out->name = names[n];
	}
}

static void describe(const uint8_t *dex, size_t dex_size)
{
	const struct varid_layout layout = {
		.machine = METHODS_MACHINE,
		.word = sizeof(void *),
		.rule_count = 1,
		.quick_rule = VARID_NO_RULE,
		.flags = VARID_LAYOUT_ON_NATIVE_STACK,
		.thread_tid = offsetof(struct varid_shadow, tid),
		.thread_fragment = VARID_NO_FIELD,
		.fragment_quick = VARID_NO_FIELD,
		.fragment_link = VARID_NO_FIELD,
		.fragment_top = VARID_NO_FIELD,
		.method_class = VARID_NO_FIELD,
		.method_code = VARID_NO_FIELD,
		.method_index = VARID_NO_FIELD,
		.class_dex_cache = VARID_NO_FIELD,
		.dex_cache_dex_file = VARID_NO_FIELD,
		.dex_file_begin = VARID_NO_FIELD,
		.rules = { { .kind = VARID_RULE_SHADOW, .reg_pc = VARID_NO_REG, .reg_frame = VARID_NO_REG } },
	};
	struct varid_range ranges[2] = {
		{ .kind = VARID_RANGE_INTERPRETER },
		{ .kind = VARID_RANGE_BRIDGE },
	};
	struct varid_range sorted[2];

	methods_code(&ranges[0].start, &ranges[0].end);
	calls_code(&ranges[1].start, &ranges[1].end);
	sorted[0] = ranges[ranges[0].start > ranges[1].start];
	sorted[1] = ranges[ranges[0].start <= ranges[1].start];
	if (!dim_init(VARID_VM_OTHER, &layout, sorted, 2, getenv("XDG_RUNTIME_DIR")))
		fprintf(stderr, "shadowvm: no tunnel\n");
	dim_dex((uintptr_t)dex, dex_size, options.dex, 0);
	dex_start = dex;
	pthread_atfork(NULL, NULL, dim_after_fork);
	dim_calls_init(describe_method, NULL, getenv("VARID_TACTIC"), getenv("VARID_CALL_LOG"),
		       getenv("VARID_CALL_FILTERS"));
}

static pthread_barrier_t holding;

static void wait_for_end_of_input(void)
{
	char byte;

	pthread_barrier_wait(&holding);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static struct counts total[METHODS];
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_counts(const struct counts *counts)
{
	unsigned n;

	pthread_mutex_lock(&total_lock);
	for (n = 0; n < METHODS; n++) {
		total[n].invokes += counts[n].invokes;
		total[n].returns += counts[n].returns;
		total[n].unwinds += counts[n].unwinds;
	}
	pthread_mutex_unlock(&total_lock);
}

static void print_counts(const char *who)
{
	unsigned n;

	for (n = 0; n < METHODS; n++)
		printf("%s counts m%02u %llu %llu %llu\n", who, n, (unsigned long long)total[n].invokes,
		       (unsigned long long)total[n].returns, (unsigned long long)total[n].unwinds);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t run_thread(unsigned long which)
{
	struct context context = { 0 };
	unsigned long i;

	if (options.hold) {
		context.held = wait_for_end_of_input;
		run_held(&context, (unsigned)options.hold);
		return 0;
	}
	for (i = 0; i < options.rounds; i++) {
		uint64_t start = now();

		dim_calls_poll();
		run_round(&context, (uint64_t)which << 32 | i);
		if (options.timed)
			fprintf(stderr, "%llu\n", (unsigned long long)(now() - start));
	}
	add_counts(context.counts);
	return context.result;
}

static void *worker(void *result)
{
	uint64_t *out = result;

	if (!options.no_dim)
		dim_thread_start((varid_u32)options.records);
	*out = run_thread(*out);
	dim_thread_exit();
	return NULL;
}

/* Says what a reader of this process should find. */
static void tell_what_is_held(void)
{
	unsigned long i;

	printf("holding %d\n", (int)getpid());
	for (i = 0; i < options.hold; i++)
		printf("m%02lu %#llx\n", i, (unsigned long long)method_insns[i]);
	fflush(stdout);
}

static void *teller(void *unused)
{
	pthread_barrier_wait(&holding);
	tell_what_is_held();
	return unused;
}

static void run(const char *who)
{
	pthread_t threads[MAX_WORKERS], tell;
	uint64_t results[MAX_WORKERS], result;
	unsigned long i;

	if (options.hold) {
		pthread_barrier_init(&holding, NULL, (unsigned)options.threads + 2);
		if (pthread_create(&tell, NULL, teller, NULL))
			fail("pthread_create");
	}
	for (i = 0; i < options.threads; i++) {
		results[i] = i + 1;
		if (pthread_create(&threads[i], NULL, worker, &results[i]))
			fail("pthread_create");
	}
	result = run_thread(0);
	for (i = 0; i < options.threads; i++) {
		pthread_join(threads[i], NULL);
		result ^= results[i];
	}
	if (options.hold)
		pthread_join(tell, NULL);
	else if (!options.quiet)
		printf("%s %d %#018llx\n", who, (int)getpid(), (unsigned long long)result);
	if (options.counts)
		print_counts(who);
	fflush(stdout);
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "dex", required_argument, NULL, 'd' },     { "name", required_argument, NULL, 'n' },
		{ "rounds", required_argument, NULL, 'r' },  { "threads", required_argument, NULL, 't' },
		{ "records", required_argument, NULL, 'c' }, { "hold", required_argument, NULL, 'h' },
		{ "fork", no_argument, NULL, 'f' },          { "no-dim", no_argument, NULL, 'x' },
		{ "quiet", no_argument, NULL, 'q' },         { "counts", no_argument, NULL, 'o' },
		{ "remap", no_argument, NULL, 'm' },         { "work", required_argument, NULL, 'w' },
		{ "timed", no_argument, NULL, 'i' },         { NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'd': options.dex = strdup(optarg); break;
		case 'n': options.name = strdup(optarg); break;
		case 'r': options.rounds = number(optarg); break;
		case 't': options.threads = number(optarg); break;
		case 'c': options.records = number(optarg); break;
		case 'h': options.hold = number(optarg); break;
		case 'f': options.fork = 1; break;
		case 'x': options.no_dim = 1; break;
		case 'q': options.quiet = 1; break;
		case 'o': options.counts = 1; break;
		case 'm': remapping = 1; break;
		case 'w': work_steps = (unsigned)number(optarg); break;
		case 'i': options.timed = 1; break;
		default: fputs(usage, stderr); exit(2);
		}
	}
	if (!options.dex || optind < argc || options.threads > MAX_WORKERS || options.hold >= METHODS) {
		fputs(usage, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	const uint8_t *dex;
	size_t dex_size;
	pid_t child = 0;
	int status = 0;

	parse(argc, argv);
	dex = map_methods(options.dex, &dex_size);
	if (!options.no_dim) {
		describe(dex, dex_size);
		dim_thread_start((varid_u32)options.records);
	}
	if (options.name)
		take_name(argc, argv, options.name);
	if (options.fork) {
		child = fork();
		if (child < 0)
			fail("fork");
	}
	run(options.fork && !child ? "child" : "result");
	if (child > 0 && (waitpid(child, &status, 0) != child || status))
		fail("the child failed");
	dim_thread_exit();
	return 0;
}
