/* Works below a frame that is larger than any copy of a stack, of which every page is stored in. Functions keep frame pointers.
 * How long a call works is drawn at random: calls of one length beat with the sampling.
 * usage: beyond MILLISECONDS */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline, noclone, optimize("no-omit-frame-pointer")))

static volatile int worked;

/* About `mean`: by half of it more or less. */
static int drawn(int mean)
{
	static unsigned state = 1;

	state = state * 1664525u + 1013904223u;
	return mean / 2 + (int)((state >> 8) % (unsigned)mean);
}

APART void work(int rounds)
{
	for (int i = 0; i < rounds; i++)
		worked += i;
}

APART int large(int rounds)
{
	char line[70000];

	memset(line, rounds, sizeof(line));
	__asm__ volatile("" : : "r"(line) : "memory");
	work(rounds);
	return line[0];
}

APART void three(void)
{
	worked += large(drawn(60000));
}

APART void one(void)
{
	worked += large(drawn(20000));
}

APART void rounds(long milliseconds)
{
	struct timespec now;

	do {
		three();
		one();
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < milliseconds);
}

int main(int count, char **arguments)
{
	if (count != 2 || !atol(arguments[1]))
		return 2;
	rounds(atol(arguments[1]));
	return 0;
}
