/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cost and the benefit of remapping a method's address, by both ways of the paper's section 4.3, for
 * the methods of real dex files. Standard input has a line per method: file number, offset, and bytes of
 * code.
 *
 * R_original = (A_i - A_0) + H_0, plus the offset of each file among all: an address per byte of code.
 * R_dummy_hash = i + H_0, by dim's own table: an address per method.
 *
 * Instructions are counted by single-stepping, which is exact and reproducible.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* Included to access its table. */
#include "../dim/calls.c"

#define MAX_METHODS VARID_MAX_CALLS
#define MAX_FILES 64
#define ROUNDS 50000000ul
#define H0 0x600000000000ull
#define BASE 0x7f0000000000ull
#define FILE_SPACE 0x1000000ull

static struct {
	varid_u64 start, size, place;
} files[MAX_FILES];
static unsigned file_count;
static varid_u64 methods[MAX_METHODS], code_bytes;
static varid_u32 method_count, *volatile order;

static __attribute__((noinline)) varid_u64 nothing(varid_u64 method)
{
	__asm__ volatile("" : "+r"(method));
	return method;
}

/* Finds the file, then one addition and one subtraction. */
static __attribute__((noinline)) varid_u64 original(varid_u64 method)
{
	unsigned low = 0, high = file_count;

	while (high - low > 1) {
		unsigned middle = (low + high) / 2;

		if (files[middle].start <= method)
			low = middle;
		else
			high = middle;
	}
	return method - files[low].start + files[low].place + H0;
}

static __attribute__((noinline)) varid_u64 hashed(varid_u64 method)
{
	return dim_remap(method);
}

typedef varid_u64 look_up(varid_u64);

static void describe_method(varid_u64 method, struct dim_method *out)
{
	out->insns = method;
}

static void read_methods(void)
{
	unsigned file;
	unsigned long offset, size;
	varid_u64 place = 0;

	while (scanf("%u %lx %lu", &file, &offset, &size) == 3) {
		if (file >= MAX_FILES || method_count == MAX_METHODS)
			continue;
		methods[method_count++] = BASE + file * FILE_SPACE + offset;
		code_bytes += size;
		if (file >= file_count)
			file_count = file + 1;
		if (offset + size > files[file].size)
			files[file].size = offset + size;
	}
	for (file = 0; file < file_count; file++) {
		files[file].start = BASE + file * FILE_SPACE;
		files[file].place = place;
		place += files[file].size;
	}
}

/*
 * Counts the probes of each method's look-up in the table. Returns 0 if an entry is out of the look-up's
 * reach.
 */
static int count_probes(void)
{
	const struct table *in = table();
	unsigned long sum = 0, most = 0, homeless = 0;
	int all_found = 1;
	varid_u32 i;

	for (i = 0; i < method_count; i++) {
		varid_u32 slot = first_slot(methods[i]), probe = 0, entry;

		do
			entry = in->slots[(slot + probe++) & (SLOTS - 1)];
		while (entry && in->entries[entry - 1].method != methods[i]);
		/* A method has no entry only if all its slots are taken. */
		if (!entry && probe > PROBES)
			homeless++;
		else if (!entry || probe > PROBES)
			all_found = 0;
		if (probe > PROBES)
			probe = PROBES;
		sum += probe;
		if (probe > most)
			most = probe;
	}
	printf("R_dummy_hash: %.3f probes a look-up, at most %lu; %lu methods found no room\n",
	       (double)sum / method_count, most, homeless);
	return all_found;
}

static double nanoseconds(look_up look)
{
	struct timespec from, to;
	varid_u64 x = 0;
	unsigned long i;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (i = 0; i < ROUNDS; i++)
		x += look(methods[order[i % method_count]]);
	clock_gettime(CLOCK_MONOTONIC, &to);
	__asm__ volatile("" ::"r"(x));
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / (double)ROUNDS;
}

/* Counts the instructions of a look-up: the mean over the methods, and the maximum. */
static void count_instructions(look_up look, double *mean, unsigned long *most)
{
	unsigned long total = 0;
	varid_u32 of = method_count < 2000 ? method_count : 2000, i;
	int status;
	pid_t child = fork();

	*most = 0;
	if (!child) {
		dim_after_fork();
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		for (i = 0; i < of; i++) {
			raise(SIGSTOP);
			look(methods[order[i]]);
		}
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(child, &status, 0);
	for (i = 0; i < of; i++) {
		unsigned long steps = 0;

		/* Steps to the next SIGSTOP. The instructions of raise() itself are the same each time. */
		do {
			ptrace(PTRACE_SINGLESTEP, child, 0, 0);
			waitpid(child, &status, 0);
			steps++;
		} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
		total += steps;
		if (steps > *most)
			*most = steps;
	}
	ptrace(PTRACE_KILL, child, 0, 0);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	*mean = (double)total / of;
}

static void report(const char *name, look_up look)
{
	double mean, empty, time = nanoseconds(look) - nanoseconds(nothing);
	unsigned long most, empty_most;

	count_instructions(look, &mean, &most);
	count_instructions(nothing, &empty, &empty_most);
	printf("%s: %.1f instructions more than a call of nothing, at most %lu; %.2f ns\n", name, mean - empty,
	       most - empty_most, time);
}

int main(void)
{
	const struct varid_layout layout = { .rule_count = 1, .rules = { { .kind = VARID_RULE_SHADOW } } };
	varid_u32 i;

	read_methods();
	if (!method_count || !dim_init(VARID_VM_OTHER, &layout, 0, 0, 0))
		return 1;
	dim_calls_init(describe_method, NULL, NULL, NULL, NULL);
	order = calloc(method_count, sizeof(*order));
	for (i = 0; order && i < method_count; i++)
		order[i] = (varid_u32)((varid_u64)i * 2654435761u % method_count);
	for (i = 0; i < method_count; i++)
		dim_remap(methods[i]);
	printf("%u methods in %u dex files\n", method_count, file_count);
	printf("S_original = sum of M_i = %llu addresses, S_dummy_hash = N = %u: 1/%.0f\n",
	       (unsigned long long)code_bytes, method_count, (double)code_bytes / method_count);
	if (!count_probes()) {
		fprintf(stderr, "a look-up of %d steps does not find each method that has an entry\n", PROBES);
		return 1;
	}
	report("R_original", original);
	report("R_dummy_hash", hashed);
	return 0;
}
