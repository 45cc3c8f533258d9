/* Works below functions whose buffers are mostly never stored in: whole pages of the stack are not in memory.
 * usage: untouched MILLISECONDS */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static long milliseconds;
static volatile int worked;

APART void work(void)
{
	struct timespec now, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_sec += milliseconds / 1000;
	do {
		for (int i = 0; i < 20000; i++)
			worked += i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}

APART int small(void)
{
	char line[8192];

	line[0] = 1;
	__asm__ volatile("" : : "r"(line) : "memory");
	work();
	return line[0];
}

APART int large(void)
{
	char line[16384];

	line[0] = 1;
	__asm__ volatile("" : : "r"(line) : "memory");
	work();
	return line[0];
}

APART int twice(void)
{
	char line[8192];

	line[0] = 1;
	__asm__ volatile("" : : "r"(line) : "memory");
	return line[0] + small();
}

APART void *thread(void *nothing)
{
	worked += twice();
	return nothing;
}

int main(int count, char **arguments)
{
	pthread_t other;

	if (count != 2 || !(milliseconds = atol(arguments[1])))
		return 2;
	worked += large();
	if (pthread_create(&other, NULL, thread, NULL))
		return 1;
	pthread_join(other, NULL);
	return 0;
}
