// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
/* Which instructions does the emulated board execute, and how often? A plugin of QEMU: `-plugin instructions.so,out=FILE` writes a line
 * for each address at which an instruction was executed, in hexadecimal, and the number of times.
 *
 * The declarations are those of QEMU's plugin interface, version 1 (docs/devel/tcg-plugins.rst); Debian has no package with the header.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct qemu_info_t qemu_info_t;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op, void *, uint64_t);

#define EXPORTED __attribute__((visibility("default")))
#define SLOTS ((size_t)1 << 22) /* a boot and a recorder execute a fifth as many */

EXPORTED int qemu_plugin_version = 1;

/* A hash table with open addresses; the board has one CPU. */
static struct slot {
	uint64_t address;
	uint64_t count;
} *slots;
static size_t used;
static const char *out;

static uint64_t *count_of(uint64_t address)
{
	size_t at = (address * 0x9e3779b97f4a7c15u) >> 42;

	while (slots[at].address && slots[at].address != address)
		at = (at + 1) % SLOTS;
	if (!slots[at].address && ++used > SLOTS / 2) {
		fputs("instructions: more addresses than there is room for\n", stderr);
		exit(1);
	}
	slots[at].address = address;
	return &slots[at].count;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		uint64_t address = qemu_plugin_insn_vaddr(instruction);

		if (address)
			qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64, count_of(address), 1);
	}
}

static void written(qemu_plugin_id_t id, void *data)
{
	FILE *file = fopen(out, "w");
	bool failed = !file;

	(void)id;
	(void)data;
	for (size_t i = 0; file && i < SLOTS; i++)
		if (slots[i].count)
			failed |= fprintf(file, "%" PRIx64 " %" PRIu64 "\n", slots[i].address, slots[i].count) < 0;
	if (failed || fclose(file))
		perror(out);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4) || !(slots = calloc(SLOTS, sizeof(*slots)))) {
		fputs("instructions: usage: -plugin instructions.so,out=FILE\n", stderr);
		return 1;
	}
	out = strdup(argv[0] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, written, NULL);
	return 0;
}
