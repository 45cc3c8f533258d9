/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The start and the end of the toy VM. */
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
