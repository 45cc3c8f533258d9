// A program that does nothing but compute, for measurements.
//
// usage: spin work ROUNDS          waits for a line on standard input, does a fixed work and prints the nanoseconds that it took
//        spin threads COUNT SECONDS FILE   lets so many threads compute and writes the CPU seconds that they had into a file
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void compute(uint64_t rounds)
{
	uint64_t value = rounds;
	while (rounds--) {
		value = value * 31 + 1;
		__asm__ volatile("" : "+r"(value));
	}
}

static uint64_t end;

static void *thread(void *unused)
{
	while (now(CLOCK_MONOTONIC) < end)
		compute(10000);
	return unused;
}

static int threads(long count, double seconds, const char *path)
{
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_t *all = calloc((size_t)count, sizeof *all);
	end = now(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	for (long at = 0; at < count; at++) {
		if (pthread_create(&all[at], &small, thread, NULL)) {
			perror("pthread_create");
			return 1;
		}
	}
	for (long at = 0; at < count; at++)
		pthread_join(all[at], NULL);
	free(all);
	FILE *file = fopen(path, "w");
	return !file || fprintf(file, "%.9f\n", (double)now(CLOCK_PROCESS_CPUTIME_ID) / 1e9) < 0 || fclose(file);
}

int main(int count, char **arguments)
{
	if (count == 5 && !strcmp(arguments[1], "threads"))
		return threads(atol(arguments[2]), atof(arguments[3]), arguments[4]);
	if (count != 3 || strcmp(arguments[1], "work"))
		return 2;
	getchar();
	uint64_t start = now(CLOCK_MONOTONIC);
	compute(strtoull(arguments[2], NULL, 10));
	printf("%llu\n", (unsigned long long)(now(CLOCK_MONOTONIC) - start));
	return 0;
}
