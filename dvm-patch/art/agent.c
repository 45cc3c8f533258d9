/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The agent that publishes ART's state to varid: -agentpath:libvarid_art.so[=FOLDER]
 *
 * ART only has to load it. The build-id selects the layout, and dex files come from the list
 * that ART maintains for native debuggers (__dex_debug_descriptor). ART calls a hook at each
 * change of that list, under its lock; the hook publishes the change. FOLDER is the folder of
 * the tunnel's file if the kernel has no memfd.
 *
 * If the build is unknown, or its layout does not fit the process, nothing is published, one
 * line on standard error explains why, and the VM continues.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "builds.h"
#include "dim.h"
#include "invokes.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEX 4096 /* maximum number of list entries that are followed */
#define MAX_TLS (1 << 20)

enum { DEX_REGISTERED = 1, DEX_UNREGISTERED = 2 };

/* ART's list for debuggers: the first part of what GDB's JIT interface defines. */
struct dex_entry {
	struct dex_entry *next;
	struct dex_entry *prev;
	const void *start;
	varid_u64 size;
};

struct dex_debug {
	varid_u32 version;
	varid_u32 action;
	struct dex_entry *relevant;
	struct dex_entry *first;
};

typedef void dex_hook(void);

/* libart's address and build. */
struct libart {
	varid_u64 base;
	varid_u8 build_id[VARID_BUILD_ID_SIZE];
	varid_u32 build_id_size;
	const struct varid_build *build;
	const char *path;
	int found;
};

static struct dex_debug *dex_debug;
static dex_hook **hook;
static dex_hook *hook_before;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[256];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	if (length > (int)sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length] = '\n';
	if (write(STDERR_FILENO, line, (size_t)length + 1) < 0)
		return;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Reads the GNU build-id of a loaded object from its notes. */
static void read_build_id(const struct dl_phdr_info *info, struct libart *art)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + phdr->p_vaddr);
		size_t left = phdr->p_memsz;

		if (phdr->p_type != PT_NOTE)
			continue;
		while (left >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			size_t name = (note->n_namesz + 3ul) & ~3ul;
			size_t whole = sizeof(*note) + name + ((note->n_descsz + 3ul) & ~3ul);

			if (whole > left)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    !memcmp(at + sizeof(*note), "GNU", 4) && note->n_descsz <= VARID_BUILD_ID_SIZE) {
				art->build_id_size = note->n_descsz;
				memcpy(art->build_id, at + sizeof(*note) + name, note->n_descsz);
				return;
			}
			at += whole;
			left -= whole;
		}
	}
}

static int look_for_libart(struct dl_phdr_info *info, size_t size, void *found)
{
	struct libart *art = found;

	(void)size;
	if (!info->dlpi_name || strncmp(base_name(info->dlpi_name), "libart.so", 9))
		return 0;
	art->found = 1;
	art->base = info->dlpi_addr;
	art->path = info->dlpi_name;
	read_build_id(info, art);
	art->build = varid_build_find(art->build_id, art->build_id_size);
	return 1;
}

/* Completes the layout and checks it against this thread, which is attached to ART. */
static const char *complete_layout(const struct libart *art, struct varid_layout *layout)
{
	long offset;
	uintptr_t thread;
	varid_u32 tid;

	if (art->build->layout.word != sizeof(void *))
		return "its pointers are of another size";
	offset = *(const long *)(uintptr_t)(art->base + art->build->tls_word);
	if (!offset || offset > MAX_TLS || offset < -MAX_TLS)
		return "no offset of thread-local storage where it should be";
	varid_build_layout(art->build, art->base, offset, layout);
	thread = *(const uintptr_t *)(dim_thread_pointer() + (unsigned long)offset);
	if (!thread || thread % sizeof(void *))
		return "this thread is not attached";
	memcpy(&tid, (const char *)thread + layout->thread_tid, sizeof(tid));
	if (tid != (varid_u32)syscall(SYS_gettid))
		return "this thread's tid is not where it should be";
	return NULL;
}

/* Finds the path of the file that is mapped at the address, or "". */
static void location_of(const void *address, char *location, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;

	location[0] = 0;
	if (!maps)
		return;
	while (getline(&line, &room, maps) > 0) {
		unsigned long start, end;
		int path = 0;

		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &path) < 2 || !path)
			continue;
		if ((uintptr_t)address >= start && (uintptr_t)address < end) {
			line[strcspn(line, "\n")] = 0;
			snprintf(location, size, "%s", line + path);
			break;
		}
	}
	free(line);
	fclose(maps);
}

/* Returns 1 for a file of the boot class path: code of the framework and not of an app. */
static int is_boot(const char *location)
{
	return !strncmp(location, "/system/framework/", 18) || !strncmp(location, "/apex/", 6) ||
	       !strcmp(base_name(location), "boot.dex");
}

static void tell_dex(const struct dex_entry *entry)
{
	char location[VARID_CODE_LOCATION];

	location_of(entry->start, location, sizeof(location));
	dim_dex((uintptr_t)entry->start, entry->size, location, is_boot(location) ? VARID_CODE_BOOT : 0);
}

/* The hook: ART has changed the list and holds its lock. */
static void dex_changed(void)
{
	const struct dex_entry *entry = dex_debug->relevant;

	if (entry && dex_debug->action == DEX_REGISTERED) {
		tell_dex(entry);
		varid_invokes_dex_came();
	} else if (entry && dex_debug->action == DEX_UNREGISTERED) {
		varid_invokes_dex_gone((uintptr_t)entry->start);
		dim_dex_gone((uintptr_t)entry->start);
	}
	if (hook_before)
		hook_before();
}

static void follow_dex_files(const struct libart *art)
{
	const struct dex_entry *entry;
	unsigned n = 0;

	dex_debug = (struct dex_debug *)(uintptr_t)(art->base + art->build->dex_debug);
	hook = (dex_hook **)(uintptr_t)(art->base + art->build->dex_debug_hook);
	hook_before = *hook;
	__atomic_store_n(hook, dex_changed, __ATOMIC_RELEASE);
	/*
	 * Publishes the earlier entries. An entry that is added meanwhile is published twice,
	 * which dim ignores.
	 */
	for (entry = dex_debug->first; entry && n < MAX_DEX; entry = entry->next, n++)
		if (entry->start)
			tell_dex(entry);
}

static void publish(const char *folder, void *vm)
{
	static struct varid_range ranges[VARID_BUILD_RANGES];
	struct libart art = { 0 };
	struct varid_layout layout;
	const char *problem;
	varid_u32 count;

	if (hook)
		return; /* this library is already loaded as an agent */
	dl_iterate_phdr(look_for_libart, &art);
	if (!art.found) {
		say("varid: no libart.so in this process: no tunnel");
		return;
	}
	if (!art.build) {
		char id[2 * VARID_BUILD_ID_SIZE + 1] = "";

		for (varid_u32 i = 0; i < art.build_id_size; i++)
			snprintf(id + 2 * i, 3, "%02x", art.build_id[i]);
		say("varid: libart with build-id %s is none of the known builds: no tunnel", id[0] ? id : "(none)");
		return;
	}
	problem = complete_layout(&art, &layout);
	if (problem) {
		say("varid: %s does not fit this process: %s: no tunnel", art.build->name, problem);
		return;
	}
	count = varid_build_ranges(art.build, art.base, ranges, VARID_BUILD_RANGES);
	if (!dim_init(VARID_VM_ART, &layout, ranges, count, folder)) {
		say("varid: no memfd and no folder to put the tunnel in: no tunnel");
		return;
	}
	pthread_atfork(NULL, NULL, dim_after_fork);
	follow_dex_files(&art);
	varid_invokes_init(art.build, &layout, vm, art.path);
}

/* Without options, the folder is that of varid's sockets. */
static void publish_in(const char *options, void *vm)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char folder[256];

	if (options && options[0])
		snprintf(folder, sizeof(folder), "%s", options);
	else if (runtime)
		snprintf(folder, sizeof(folder), "%s/varid", runtime);
	else
		snprintf(folder, sizeof(folder), "/run/varid");
	publish(folder, vm);
}

/* Called by the VM. Always returns 0, so that the VM continues. */
EXPORT int Agent_OnLoad(void *vm, char *options, void *reserved);
EXPORT int Agent_OnLoad(void *vm, char *options, void *reserved)
{
	(void)reserved;
	publish_in(options, vm);
	return 0;
}

EXPORT int Agent_OnAttach(void *vm, char *options, void *reserved);
EXPORT int Agent_OnAttach(void *vm, char *options, void *reserved)
{
	return Agent_OnLoad(vm, options, reserved);
}

EXPORT void Agent_OnUnload(void *vm);
EXPORT void Agent_OnUnload(void *vm)
{
	(void)vm;
	if (!hook)
		return;
	if (__atomic_load_n(hook, __ATOMIC_ACQUIRE) == dex_changed)
		__atomic_store_n(hook, hook_before, __ATOMIC_RELEASE);
	hook = NULL;
	varid_invokes_end();
	dim_shutdown();
}
