// A plugin of qemu-riscv32 that counts how often each instruction is executed.
// usage: qemu-riscv32 -plugin executions.so,output=FILE PROGRAM
// FILE has a line `ADDRESS COUNT` for each executed instruction. No header of QEMU is packaged in Debian: what is used
// of version 1 of its interface is declared here.

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum plugin_operation { ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*translated)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(plugin_id id, void (*exited)(plugin_id, void *), void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum plugin_operation operation,
                                                void *counter, uint64_t immediate);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { MEMORY = 16 << 20 };

// Counters by address / 2.
static uint64_t *counters;
static const char *output;

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (address < MEMORY)
            qemu_plugin_register_vcpu_insn_exec_inline(insn, ADD_U64, &counters[address / 2], 1);
    }
}

static void exited(plugin_id id, void *data)
{
    (void)id;
    (void)data;
    FILE *file = fopen(output, "w");
    if (!file) {
        perror(output);
        return;
    }
    for (uint64_t i = 0; i < MEMORY / 2; i++)
        if (counters[i])
            fprintf(file, "%" PRIx64 "\t%" PRIu64 "\n", i * 2, counters[i]);
    fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    static const char option[] = "output=";
    if (argc != 1 || strncmp(argv[0], option, sizeof option - 1) != 0) {
        fprintf(stderr, "usage: -plugin executions.so,output=FILE\n");
        return 1;
    }
    output = strdup(argv[0] + sizeof option - 1);
    counters = calloc(MEMORY / 2, sizeof *counters);
    if (!counters || !output)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, exited, NULL);
    return 0;
}
