/* How do managed threads wait in the kernel? */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "jni_subset.h"

#define JNI __attribute__((visibility("default")))

static int ends[2];
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_pipe(void)
{
	if (pipe(ends))
		_exit(3);
}

JNI int32_t Java_org_example_waits_Native_sleep(jni_env env, jni_class cls, int32_t milliseconds)
{
	struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000L };

	(void)env;
	(void)cls;
	while (nanosleep(&left, &left))
		;
	return milliseconds;
}

JNI int32_t Java_org_example_waits_Native_put(jni_env env, jni_class cls)
{
	(void)env;
	(void)cls;
	pthread_once(&opened, open_pipe);
	return (int32_t)write(ends[1], "x", 1);
}

JNI int32_t Java_org_example_waits_Native_take(jni_env env, jni_class cls)
{
	char byte;

	(void)env;
	(void)cls;
	pthread_once(&opened, open_pipe);
	return (int32_t)read(ends[0], &byte, 1);
}
