/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads classes of the toy VM. */
#include "Dalvik.h"

#include <stdlib.h>

static ClassObject *loadClassFromDex0(DvmDex *dex, void *loader)
{
	ClassObject *made = (ClassObject *)calloc(1, sizeof(ClassObject));

	if (made == NULL)
		return NULL;
	made->pDvmDex = dex;
	made->classLoader = loader;
	made->sourceFile = "Toy.java";
	return made;
}

ClassObject *toyLoad(DvmDex *dex, void *loader)
{
	return loadClassFromDex0(dex, loader);
}

void toyUnload(ClassObject *made)
{
	dvmFreeClassInnards(made);
	free(made);
}

void dvmFreeClassInnards(ClassObject *made)
{
	if (made == NULL)
		return;
	made->sourceFile = NULL;
}
