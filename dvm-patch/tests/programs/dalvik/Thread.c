/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads of the toy VM. */
#include "Dalvik.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool prepareThread(Thread *thread);
static void freeThread(Thread *thread);

static __thread Thread *current;

Thread *dvmThreadSelf(void)
{
	return current;
}

Thread *toyAttach(void)
{
	Thread *thread = (Thread *)calloc(1, sizeof(Thread));

	if (!thread || !prepareThread(thread))
		abort();
	return thread;
}

void toyDetach(Thread *thread)
{
	freeThread(thread);
}

static bool prepareThread(Thread *thread)
{
	if (thread == NULL)
		return false;
	thread->systemTid = (int)syscall(SYS_gettid);
	current = thread;
	pthread_mutex_lock(&gDvm.threadListLock);
	thread->next = gDvm.threadList;
	gDvm.threadList = thread;
#ifdef __cplusplus
	dvmInitializeInterpBreak(thread);
#endif
	pthread_mutex_unlock(&gDvm.threadListLock);
	return true;
}

static void freeThread(Thread *thread)
{
	if (thread == NULL)
		return;
	if (current == thread)
		current = NULL;
	pthread_mutex_lock(&gDvm.threadListLock);
	if (gDvm.threadList == thread)
		gDvm.threadList = thread->next;
	pthread_mutex_unlock(&gDvm.threadListLock);
	free(thread);
}
