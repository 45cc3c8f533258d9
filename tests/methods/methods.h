/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which methods do the VMs of tests have, shadowvm and areavm? m00 .. m63 of one class, whose dex
 * file shadowvm's build makes. Each VM says for itself what they do.
 */
#ifndef METHODS_H
#define METHODS_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#define METHODS 64
#define METHODS_CLASS "Lorg/example/shadow/Methods;"

/* All of them in their order: those that catch what is thrown below them, and the others. */
#define ALL_METHODS(METHOD, CATCHING_METHOD)                                                  \
	METHOD(00) CATCHING_METHOD(01) METHOD(02) METHOD(03) METHOD(04) METHOD(05) METHOD(06) \
	METHOD(07) METHOD(08) METHOD(09) METHOD(10) METHOD(11) METHOD(12) METHOD(13)          \
	METHOD(14) METHOD(15) METHOD(16) CATCHING_METHOD(17) METHOD(18) METHOD(19) METHOD(20) \
	METHOD(21) METHOD(22) METHOD(23) METHOD(24) METHOD(25) METHOD(26) METHOD(27)          \
	METHOD(28) METHOD(29) METHOD(30) METHOD(31) METHOD(32) CATCHING_METHOD(33) METHOD(34) \
	METHOD(35) METHOD(36) METHOD(37) METHOD(38) METHOD(39) METHOD(40) METHOD(41)          \
	METHOD(42) METHOD(43) METHOD(44) METHOD(45) METHOD(46) METHOD(47) METHOD(48)          \
	CATCHING_METHOD(49) METHOD(50) METHOD(51) METHOD(52) METHOD(53) METHOD(54) METHOD(55) \
	METHOD(56) METHOD(57) METHOD(58) METHOD(59) METHOD(60) METHOD(61) METHOD(62) METHOD(63)

/* An array of the functions of that name. */
#define METHOD_ENTRY(n) m##n,
#define METHOD_TABLE { ALL_METHODS(METHOD_ENTRY, METHOD_ENTRY) }

/* The machine that the VM is built for, as ELF numbers it. */
#if defined(__x86_64__)
#define METHODS_MACHINE EM_X86_64
#elif defined(__i386__)
#define METHODS_MACHINE EM_386
#elif defined(__aarch64__)
#define METHODS_MACHINE EM_AARCH64
#else
#define METHODS_MACHINE EM_ARM
#endif

/* Address of each method's first instruction in the mapped dex file, and its index in that. */
extern uint64_t method_insns[METHODS];
extern uint32_t method_indexes[METHODS];

/* Maps the dex file and fills those in; a file without the methods is told, and ends the process. */
const uint8_t *map_methods(const char *path, size_t *size);

#endif
