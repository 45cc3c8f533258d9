/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where are the methods in their dex file?
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods.h"

uint64_t method_insns[METHODS];
uint32_t method_indexes[METHODS];

struct dex {
	const uint8_t *bytes;
	size_t size;
	int bad; /* something lay outside */
};

static uint32_t u32(struct dex *dex, uint64_t at)
{
	uint32_t value = 0;

	if (at > dex->size || dex->size - at < sizeof(value))
		dex->bad = 1;
	else
		memcpy(&value, dex->bytes + at, sizeof(value));
	return value;
}

static uint32_t uleb128(struct dex *dex, uint64_t *at)
{
	uint32_t value = 0;
	unsigned shift;

	for (shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (*at >= dex->size) {
			dex->bad = 1;
			return 0;
		}
		byte = dex->bytes[(*at)++];
		value |= (uint32_t)(byte & 0x7f) << (shift & 31);
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static const char *string(struct dex *dex, uint32_t index)
{
	uint64_t at = u32(dex, u32(dex, 0x3c) + 4ull * index);

	uleb128(dex, &at); /* its length in UTF-16 units */
	if (at >= dex->size || !memchr(dex->bytes + at, 0, dex->size - at)) {
		dex->bad = 1;
		return "";
	}
	return (const char *)dex->bytes + at;
}

static const char *type(struct dex *dex, uint32_t index)
{
	return string(dex, u32(dex, u32(dex, 0x44) + 4ull * index));
}

/* 0 if all are there. */
static int find_methods(const uint8_t *bytes, size_t size)
{
	struct dex dex = { bytes, size, 0 };
	uint32_t classes, class_defs, i, fields, direct, index = 0;
	unsigned found = 0;
	uint64_t at;

	if (size < 0x70 || memcmp(bytes, "dex\n", 4))
		return -1;
	classes = u32(&dex, 0x60);
	class_defs = u32(&dex, 0x64);
	for (i = 0; i < classes && !dex.bad; i++)
		if (!strcmp(type(&dex, u32(&dex, class_defs + 32ull * i)), METHODS_CLASS))
			break;
	if (dex.bad || i == classes)
		return -1;
	at = u32(&dex, class_defs + 32ull * i + 24);
	fields = uleb128(&dex, &at);
	fields += uleb128(&dex, &at);
	direct = uleb128(&dex, &at);
	uleb128(&dex, &at); /* virtual methods */
	for (i = 0; i < fields && !dex.bad; i++) {
		uleb128(&dex, &at);
		uleb128(&dex, &at);
	}
	for (i = 0; i < direct && !dex.bad; i++) {
		uint32_t code;
		const char *name;

		index += uleb128(&dex, &at);
		uleb128(&dex, &at); /* access flags */
		code = uleb128(&dex, &at);
		name = string(&dex, u32(&dex, u32(&dex, 0x5c) + 8ull * index + 4));
		if (strlen(name) == 3 && name[0] == 'm' && name[1] >= '0' && name[1] <= '6' &&
		    name[2] >= '0' && name[2] <= '9' && code) {
			unsigned n = (unsigned)(name[1] - '0') * 10 + (unsigned)(name[2] - '0');

			if (n < METHODS) {
				method_insns[n] = (uint64_t)(uintptr_t)bytes + code + 16;
				method_indexes[n] = index;
				found++;
			}
		}
	}
	return dex.bad || found != METHODS ? -1 : 0;
}

static void fail(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, path, why);
	exit(1);
}

const uint8_t *map_methods(const char *path, size_t *size)
{
	struct stat status;
	void *at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status))
		fail(path, strerror(errno));
	*size = (size_t)status.st_size;
	at = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		fail(path, strerror(errno));
	close(fd);
	if (find_methods(at, *size))
		fail(path, "it has no class " METHODS_CLASS " with methods m00 to m63");
	return at;
}
