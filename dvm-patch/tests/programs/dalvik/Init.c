/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How does the toy VM start and end? */
#include "Dalvik.h"

static bool ready;

bool dvmInitAfterZygote(void)
{
	ready = true;
	return ready;
}

void dvmShutdown(void)
{
	ready = false;
}
