/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests that ART's hook reaches the agent. A JNI library that makes ART register dex files
 * late, by ART's own functions: LATE_DEX twice, and the second copy is unregistered again.
 * Prints "ready THREAD TID KEPT GONE".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first part of art::DexFile. */
struct dex_file {
	const void *vtable;
	const void *begin;
	size_t size;
};

typedef void *current(void);
typedef void change(void *thread, const struct dex_file *dex);

static int find_libart(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libart.so"))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return found;
}

int JNI_OnLoad(void *vm, void *reserved)
{
	const char *path = NULL;
	struct dex_file kept = { 0 }, gone;
	struct stat status;
	void *library, *thread;
	int fd = open(getenv("LATE_DEX"), O_RDONLY);

	(void)vm;
	(void)reserved;
	dl_iterate_phdr(find_libart, &path);
	library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (!library || fd < 0 || fstat(fd, &status))
		exit(1);
	kept.size = (size_t)status.st_size;
	gone = kept;
	kept.begin = mmap(NULL, kept.size, PROT_READ, MAP_PRIVATE, fd, 0);
	gone.begin = mmap(NULL, gone.size, PROT_READ, MAP_PRIVATE, fd, 0);
	thread = ((current *)function(library, "_ZN3art6Thread14CurrentFromGdbEv"))();
	change *add = (change *)function(library, "_ZN3art24AddNativeDebugInfoForDexEPNS_6ThreadEPKNS_7DexFileE");
	change *drop = (change *)function(library, "_ZN3art27RemoveNativeDebugInfoForDexEPNS_6ThreadEPKNS_7DexFileE");

	add(thread, &kept);
	add(thread, &gone);
	drop(thread, &gone);
	printf("ready %llx %d %llx %llx\n", (unsigned long long)(size_t)thread, (int)gettid(),
	       (unsigned long long)(size_t)kept.begin, (unsigned long long)(size_t)gone.begin);
	fflush(stdout);
	return 0x10006;
}
