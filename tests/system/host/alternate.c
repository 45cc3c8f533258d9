/* Reads through null at the end of a chain of calls. The handler, which runs on an alternate stack, works for a while and goes on behind the
 * instruction. In the first thread the alternate stack lies below the ordinary one, in the second one above.
 * usage: alternate MILLISECONDS */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#define APART __attribute__((noinline, noclone))
#define DEPTH 20 /* as the test has it */
#define SIZE 65536

static char low[SIZE];
static struct timespec end;
static volatile int worked;

static int is_over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec);
}

APART void work(void)
{
	for (int i = 0; i < 20000; i++)
		worked += i;
}

APART void handler(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	work();
	/* mov (%rdi), %eax */
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

APART int faulting(void)
{
	int read;

	__asm__ volatile("mov (%1), %0" : "=a"(read) : "D"(0L));
	return read;
}

APART int down(int depth)
{
	int sum = depth ? down(depth - 1) : faulting();

	__asm__ volatile("" : "+r"(sum));
	return sum + 1;
}

APART void chain(void *stack)
{
	stack_t alternate = { .ss_sp = stack, .ss_size = SIZE };

	if (sigaltstack(&alternate, NULL))
		abort();
	while (!is_over())
		down(DEPTH);
}

APART void *thread(void *stack)
{
	char here;

	if ((char *)stack < &here)
		abort(); /* mappings are made downwards */
	chain(stack);
	return NULL;
}

int main(int count, char **arguments)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	long milliseconds = count > 1 ? atol(arguments[1]) : 0;
	void *high = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t second;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += milliseconds / 1000;
	end.tv_nsec += milliseconds % 1000 * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	if (high == MAP_FAILED || sigaction(SIGSEGV, &action, NULL) || pthread_create(&second, NULL, thread, high))
		return 1;
	chain(low);
	return pthread_join(second, NULL);
}
