/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which methods does a program have? See program.py for its format. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm.h"

struct header {
	char magic[8];
	uint32_t size, methods, methods_at, reserved[3];
};

struct entry {
	uint32_t name, code, code_size, lines, line_count, registers, reserved[2];
};

struct method *methods[256];
unsigned method_count;
const uint8_t *program;
uint64_t program_size;

static void fail(const char *path, const char *why)
{
	fprintf(stderr, "stackvm: %s: %s\n", path, why);
	exit(1);
}

static void take_method(const char *path, unsigned index, const struct entry *entry)
{
	struct method *method = calloc(1, sizeof(*method));

	if (!method || entry->name >= program_size || entry->code > program_size ||
	    entry->code_size > program_size - entry->code || entry->registers > 64)
		fail(path, "a method that lies outside");
	method->name = (const char *)program + entry->name;
	if (!entry->code) {
		method->invoke = sv_enter_native;
		method->flags = METHOD_NATIVE;
		method->run = native_function(method->name);
		if (!method->run)
			fail(path, "a native method of an unknown name");
	} else {
		if (index >= LOOPS)
			fail(path, "more methods with code than there are loops");
		method->invoke = sv_enter;
		method->code = program + entry->code;
		method->code_size = entry->code_size;
		method->run = sv_loops[index];
		method->frame = (FRAME_REGISTERS + 8 * entry->registers + 15) / 16 * 16;
	}
	methods[index] = method;
}

void load_program(const char *path)
{
	const struct header *header;
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned i;

	if (fd < 0 || fstat(fd, &status))
		fail(path, "it cannot be opened");
	program_size = (uint64_t)status.st_size;
	program = mmap(NULL, program_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (program == MAP_FAILED)
		fail(path, "it cannot be mapped");
	header = (const struct header *)program;
	if (program_size < sizeof(*header) || memcmp(header->magic, "STACKVM1", 8) || header->size != program_size ||
	    header->methods > 256 || header->methods_at % 4 ||
	    header->methods_at + header->methods * (uint64_t)sizeof(struct entry) > program_size)
		fail(path, "it is no program of stackvm");
	method_count = header->methods;
	for (i = 0; i < method_count; i++)
		take_method(path, i, (const struct entry *)(program + header->methods_at) + i);
}
