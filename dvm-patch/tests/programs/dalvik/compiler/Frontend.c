/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Installs a whole compiled method. Only 4.x does. */
#include "Dalvik.h"

void toyCompileMethod(const Method *method, void *code);

void toyCompileMethod(const Method *method, void *code)
{
	if (code) {
		dvmJitSetCodeAddr(method->insns, code, 1);
	}
}
