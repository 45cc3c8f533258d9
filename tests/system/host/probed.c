/* Calls of a function from several threads on one CPU, which the kernel takes from each other in the midst of them.
 * Prints how many there were.
 * usage: probed THREADS CALLS-OF-EACH */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static long calls;

APART int probed_leaf(int number)
{
	__asm__ volatile("" : "+r"(number));
	return number + 1;
}

APART int probed_caller(int number)
{
	/* What is done with the result leaves this frame on the stack. */
	return probed_leaf(number) * 2;
}

static void *run(void *unused)
{
	long sum = 0;

	for (int call = 0; call < calls; call++)
		sum += probed_caller(call);
	(void)unused;
	return (void *)sum;
}

int main(int count, char **arguments)
{
	int threads = count > 2 ? atoi(arguments[1]) : 0;
	pthread_t all[64];
	cpu_set_t one;
	int cpu = sched_getcpu();

	if (threads < 1 || threads > 64 || cpu < 0)
		return 2;
	calls = atol(arguments[2]);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 3;
	for (int thread = 0; thread < threads; thread++)
		if (pthread_create(&all[thread], NULL, run, NULL))
			return 3;
	for (int thread = 0; thread < threads; thread++)
		pthread_join(all[thread], NULL);
	printf("%ld\n", threads * calls);
	return 0;
}
