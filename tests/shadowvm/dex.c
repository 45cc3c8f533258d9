/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where are the methods of a class in a dex file?
 */
#include <string.h>

#include "vm.h"

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

int dex_methods(const uint8_t *bytes, size_t size, const char *descriptor, uint64_t insns[METHODS])
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
		if (!strcmp(type(&dex, u32(&dex, class_defs + 32ull * i)), descriptor))
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
				insns[n] = (uint64_t)(uintptr_t)bytes + code + 16;
				found++;
			}
		}
	}
	return dex.bad || found != METHODS ? -1 : 0;
}
