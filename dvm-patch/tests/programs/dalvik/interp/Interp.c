/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sets which threads of the toy VM report their calls. Only 4.x has a mode per thread. */
#include "Dalvik.h"

void dvmEnableSubMode(Thread *thread, ExecutionSubModes mode)
{
	thread->modes |= mode;
}

static void updateAll(int on, int off)
{
	Thread *thread;

	pthread_mutex_lock(&gDvm.threadListLock);
	for (thread = gDvm.threadList; thread; thread = thread->next)
		thread->modes = (thread->modes | on) & ~off;
	pthread_mutex_unlock(&gDvm.threadListLock);
}

void dvmEnableAllSubMode(ExecutionSubModes mode)
{
	updateAll(mode, 0);
}

void dvmDisableAllSubMode(ExecutionSubModes mode)
{
	updateAll(0, mode);
}

void dvmInitializeInterpBreak(Thread *thread)
{
	if (gDvm.methodTrace.traceEnabled) {
		dvmEnableSubMode(thread, kSubModeMethodTrace);
	}
}

void dvmCompilerUpdateGlobalState(void)
{
}
