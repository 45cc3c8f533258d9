/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Installs and discards compiled code of the toy VM. */
#include "Dalvik.h"

static int installed;
static char code[16];

struct DvmJitGlobals gDvmJit = { code, sizeof(code) };

void dvmJitSetCodeAddr(const u2 *pc, void *at, int set)
{
	installed += pc && at && set;
}

void dvmJitResetTable(void)
{
	installed = 0;
}

int toyCompiled(void)
{
	return installed;
}

static void resetCodeCache(void)
{
	if (installed < 2)
		return;
	dvmJitResetTable();
	code[0] = 0;
}

void toyCompile(const u2 *pc)
{
	char *at;

	resetCodeCache();
	at = code + 4 * installed;
	if (pc) {
		dvmJitSetCodeAddr(pc, at,
				  1);
	}
}
