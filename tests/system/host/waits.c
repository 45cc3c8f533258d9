/* Threads that wait in known functions, and what the scheduler says of each: a line THREAD TID FUNCTION AT ELAPSED RAN DELAYED SLICES:
 * at that moment it had lived so long, of which it had run and had been delayed as long as /proc/self/task/TID/schedstat said, in so
 * many turns. Nanoseconds.
 * usage: waits MILLISECONDS [ROLE...]; all roles without any */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAITS __attribute__((noinline))
#define MS 1000000LL

static long long end;
static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static void sleep_for(long long ns)
{
	struct timespec time = { ns / (1000 * MS), ns % (1000 * MS) };

	nanosleep(&time, NULL);
}

static WAITS int sleeps_long(void)
{
	sleep_for(20 * MS);
	return 1;
}

static WAITS int sleeps_short(void)
{
	sleep_for(MS / 10);
	return 1;
}

static WAITS int reads(void)
{
	char byte;

	return read(ends[0], &byte, 1) == 1;
}

static WAITS int locks(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return 1;
}

static WAITS int holds(void)
{
	pthread_mutex_lock(&mutex);
	sleep_for(20 * MS);
	pthread_mutex_unlock(&mutex);
	sched_yield();
	return 1;
}

static WAITS int works(void)
{
	long long until = now() + 5 * MS;

	while (now() < until)
		;
	return 1;
}

static WAITS int writes(void)
{
	sleep_for(10 * MS);
	return write(ends[1], "x", 1) == 1;
}

static const struct role {
	const char *name;
	int (*wait)(void);
} roles[] = {
	{ "sleeps_long", sleeps_long }, { "sleeps_short", sleeps_short }, { "writes", writes }, { "reads", reads },
	{ "holds", holds }, { "locks", locks }, { "works", works },
};
#define ROLES (sizeof(roles) / sizeof(*roles))
#define COPIES 4 /* of the role that works: they wait for CPUs */

struct thread {
	pthread_t id;
	const struct role *role;
	long long created;
};

static void read_schedstat(long long *ran, long long *delayed, long long *slices)
{
	char path[64], text[128] = { 0 };
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	file = open(path, O_RDONLY);
	if (file < 0 || read(file, text, sizeof(text) - 1) <= 0 || sscanf(text, "%lld %lld %lld", ran, delayed, slices) != 3)
		exit(3);
	close(file);
}

static void *run(void *argument)
{
	struct thread *thread = argument;
	long long at, again, ran = 0, delayed = 0, slices = 0;

	while (now() < end && thread->role->wait())
		;
	/* What is said and when belong together if nothing has come between. */
	do {
		again = delayed;
		read_schedstat(&ran, &delayed, &slices);
		at = now();
		read_schedstat(&ran, &delayed, &slices);
	} while (delayed != again);
	printf("THREAD %ld %s %lld %lld %lld %lld %lld\n", syscall(SYS_gettid), thread->role->name, at, at - thread->created, ran,
	       delayed, slices);
	return NULL;
}

static int is_wanted(const char *name, int count, char **wanted)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(name, wanted[i]))
			return 1;
	return !count;
}

static void *waits_once(void *unused)
{
	(void)unused;
	sleeps_long();
	return NULL;
}

/* Processes that end at once, and threads that end while others of theirs wait. */
static void storm(void)
{
	while (now() < end) {
		pid_t child = fork();

		if (!child) {
			pthread_t waiting;

			pthread_create(&waiting, NULL, waits_once, NULL);
			sleeps_short();
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

int main(int count, char **arguments)
{
	static struct thread threads[ROLES + COPIES];
	size_t started = 0;

	if (count < 2 || pipe(ends))
		return 2;
	end = now() + atoll(arguments[1]) * MS;
	if (count == 3 && !strcmp(arguments[2], "storm")) {
		storm();
		return 0;
	}
	for (size_t i = 0; i < ROLES; i++) {
		int copies = roles[i].wait == works ? COPIES : 1;

		for (; is_wanted(roles[i].name, count - 2, arguments + 2) && copies; copies--) {
			struct thread *thread = &threads[started++];

			thread->role = &roles[i];
			thread->created = now();
			if (pthread_create(&thread->id, NULL, run, thread))
				return 3;
		}
	}
	for (size_t i = 0; i < started; i++) {
		pthread_join(threads[i].id, NULL);
		/* The reader waits for one byte more. */
		if (threads[i].role->wait == writes && write(ends[1], "x", 1) != 1)
			return 3;
	}
	return 0;
}
