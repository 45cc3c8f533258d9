/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The toy VM's own trace. */
#include "Dalvik.h"

struct DvmGlobals gDvm = { 0, { 0 }, NULL, PTHREAD_MUTEX_INITIALIZER };

static int traced;

void toyTrace(int on)
{
	gDvm.activeProfilers += on ? 1 : -1;
	gDvm.methodTrace.traceEnabled = on;
#ifdef __cplusplus
	if (on)
		dvmEnableAllSubMode(kSubModeMethodTrace);
	else
		dvmDisableAllSubMode(kSubModeMethodTrace);
#endif
}

int toyTraces(void)
{
#ifdef __cplusplus
	return dvmThreadSelf()->modes && gDvm.activeProfilers;
#else
	return gDvm.activeProfilers && gDvm.methodTrace.traceEnabled;
#endif
}

int toyTraced(void)
{
	return traced;
}

void dvmMethodTraceAdd(Thread *self, const Method *method, int action)
{
	int events = self && method && action == 0;

	traced += events;
}
