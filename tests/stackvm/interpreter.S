/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How does stackvm execute bytecode, and what do its frames look like? On x86-64.
 *
 *   r12  bytecode pc      r15  registers of the frame       r14  struct thread
 *
 * A frame of a method, from its CFA down:
 *
 *   -8 return address   -16 rbp   -24 the caller's r15   -32 r14   -40 the caller's r12   -48 rbx
 *   ... registers; r15 points to the first, and the word below it to -48
 *   sp  the method
 *
 * No frame has a link to another. rbp is nobody's business but a test's: it and the symbols tell which method runs,
 * whatever r12, r15 and sp say. For that each method has a loop of its own, a copy of the one interpreter.
 *
 * From sv_body_start on r12 and r15 are always those of one frame: of the caller, until all of the callee's frame is
 * there. Where they change one after the other is before that. While native code enters a method, or gets back what it
 * returns, r15 is zero: there is no frame.
 */
#include "vm.h"

/* What a whole frame has saved, for unwinders. */
	.macro saved
	.cfi_offset %rbp, -16
	.cfi_offset %r15, -24
	.cfi_offset %r14, -32
	.cfi_offset %r12, -40
	.cfi_offset %rbx, -48
	.endm

/* CFA = *(r15 - 8) + 48, and *(rsp + 16) + 48: DW_CFA_def_cfa_expression, breg, deref, plus_uconst. */
	.macro cfa_by_r15
	.cfi_escape 0x0f, 5, 0x7f, 0x78, 0x06, 0x23, 0x30
	saved
	.endm
	.macro cfa_by_rsp
	.cfi_escape 0x0f, 5, 0x77, 0x10, 0x06, 0x23, 0x30
	saved
	.endm

	.section sv_code, "ax", @progbits
	.globl sv_code_start, sv_body_start, sv_code_end
sv_code_start:

/* The callee's frame is there: rdx its first instruction, rcx its loop. */
	.type sv_switch_in, @function
sv_switch_in:
	.cfi_startproc
	cfa_by_rsp
	lea FRAME_REGISTERS(%rsp), %r15
	mov %rdx, %r12
	jmp *%rcx
	.cfi_endproc
	.size sv_switch_in, . - sv_switch_in

/* sp is at what the callee has saved. */
	.type sv_switch_out, @function
sv_switch_out:
	.cfi_startproc
	.cfi_def_cfa_offset 48
	saved
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	pop %r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	pop %r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r14
	pop %r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r15
	jmp sv_return
	.cfi_endproc
	.size sv_switch_out, . - sv_switch_out

/* Native code calls: what the thread has noted becomes a link, which is at sp. */
	.type sv_link, @function
sv_link:
	.cfi_startproc
	.cfi_def_cfa %rbp, 16
	.cfi_offset %rbp, -16
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	.cfi_offset %r13, -40
	.cfi_offset %r14, -48
	.cfi_offset %r15, -56
	movq $0, THREAD_NOTE(%r14)
	mov %rsp, THREAD_LINK(%r14)
	xor %r15d, %r15d
	jmp sv_linked
	.cfi_endproc
	.size sv_link, . - sv_link

	.type sv_unlink, @function
sv_unlink:
	.cfi_startproc
	.cfi_def_cfa %rbp, 16
	.cfi_offset %rbp, -16
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	.cfi_offset %r13, -40
	.cfi_offset %r14, -48
	.cfi_offset %r15, -56
	mov 8(%rsp), %rdx
	mov %rdx, THREAD_LINK(%r14)
	mov (%rsp), %rdx
	mov %rdx, THREAD_NOTE(%r14)
	jmp sv_unlinked
	.cfi_endproc
	.size sv_unlink, . - sv_unlink

sv_body_start:

/* A method calls the bytecode of rdi with rsi and rdx. */
	.globl sv_enter
	.type sv_enter, @function
sv_enter:
	.cfi_startproc
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	push %r15
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r15, -24
	push %r14
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r14, -32
	push %r12
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r12, -40
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -48
	.cfi_def_cfa %rbp, 16
	mov %rsp, %rax
	mov METHOD_FRAME(%rdi), %ecx
	sub %rcx, %rsp
	mov %rax, FRAME_CFA_WORD(%rsp)
	mov %rdi, (%rsp)
	mov %rsi, FRAME_REGISTERS(%rsp)
	mov %rdx, FRAME_REGISTERS + 8(%rsp)
	mov METHOD_CODE(%rdi), %rdx
	mov METHOD_RUN(%rdi), %rcx
	jmp sv_switch_in
	.cfi_endproc
	.size sv_enter, . - sv_enter

/* A method returns rax. */
	.type sv_leave, @function
sv_leave:
	.cfi_startproc
	cfa_by_r15
	mov FRAME_CFA_WORD - FRAME_REGISTERS(%r15), %rsp
	jmp sv_switch_out
	.cfi_endproc
	.size sv_leave, . - sv_leave

	.type sv_return, @function
sv_return:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	pop %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size sv_return, . - sv_return

/* A method calls the C function of rdi, as (thread, rsi, rdx): r12 and r15 stay the caller's. */
	.globl sv_enter_native
	.type sv_enter_native, @function
sv_enter_native:
	.cfi_startproc
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	push %r15
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r15, -24
	push %r14
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r14, -32
	push %r12
	.cfi_adjust_cfa_offset 8
	.cfi_offset %r12, -40
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -48
	.cfi_def_cfa_register %rbp
	.cfi_def_cfa_offset 16
	sub $NATIVE_FRAME - SAVED_ALL, %rsp
	mov %rdi, (%rsp)
	mov METHOD_RUN(%rdi), %rax
	mov %rsp, THREAD_NOTE(%r14)
	mov %r14, %rdi
	call *%rax
	movq $0, THREAD_NOTE(%r14)
	add $NATIVE_FRAME - SAVED_ALL, %rsp
	pop %rbx
	pop %r12
	pop %r14
	pop %r15
	pop %rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size sv_enter_native, . - sv_enter_native

/* Goes on to the instruction that begins `size` bytes later. */
	.macro next size
	jmp 900\size\()f
	.endm

	.macro loop number
	.type m\number, @function
m\number:
	.cfi_startproc
	cfa_by_r15
	jmp 9000f
/* A = B op C */
10:	/* nop */
	next 4
11:	/* const A, 32 bits */
	movzbl 1(%r12), %eax
	movslq 4(%r12), %rcx
	mov %rcx, (%r15, %rax, 8)
	next 8
12:	/* add A, B, C */
	movzbl 2(%r12), %eax
	movzbl 3(%r12), %ecx
	mov (%r15, %rax, 8), %rdx
	add (%r15, %rcx, 8), %rdx
	movzbl 1(%r12), %eax
	mov %rdx, (%r15, %rax, 8)
	next 4
13:	/* mul A, B, C */
	movzbl 2(%r12), %eax
	movzbl 3(%r12), %ecx
	mov (%r15, %rax, 8), %rdx
	imul (%r15, %rcx, 8), %rdx
	movzbl 1(%r12), %eax
	mov %rdx, (%r15, %rax, 8)
	next 4
14:	/* xor A, B, C */
	movzbl 2(%r12), %eax
	movzbl 3(%r12), %ecx
	mov (%r15, %rax, 8), %rdx
	xor (%r15, %rcx, 8), %rdx
	movzbl 1(%r12), %eax
	mov %rdx, (%r15, %rax, 8)
	next 4
15:	/* shr A, B, number */
	movzbl 2(%r12), %eax
	movzbl 3(%r12), %ecx
	mov (%r15, %rax, 8), %rdx
	shr %cl, %rdx
	movzbl 1(%r12), %eax
	mov %rdx, (%r15, %rax, 8)
	next 4
16:	/* addi A, B, number */
	movzbl 2(%r12), %eax
	movsbq 3(%r12), %rcx
	add (%r15, %rax, 8), %rcx
	movzbl 1(%r12), %eax
	mov %rcx, (%r15, %rax, 8)
	next 4
17:	/* jnz A, offset */
	movzbl 1(%r12), %eax
	cmpq $0, (%r15, %rax, 8)
	jne 9001f
	next 4
18:	/* invoke A, method: A = method(A, A + 1) */
	movzbl 2(%r12), %eax
	mov THREAD_METHODS(%r14), %rdi
	mov (%rdi, %rax, 8), %rdi
	movzbl 1(%r12), %ecx
	mov (%r15, %rcx, 8), %rsi
	mov 8(%r15, %rcx, 8), %rdx
	call *METHOD_INVOKE(%rdi)
	movzbl 1(%r12), %ecx
	mov %rax, (%r15, %rcx, 8)
	next 4
19:	/* ret A */
	movzbl 1(%r12), %eax
	mov (%r15, %rax, 8), %rax
	jmp sv_leave
20:	/* jmp offset */
	jmp 9001f
21:	/* jz A, offset */
	movzbl 1(%r12), %eax
	cmpq $0, (%r15, %rax, 8)
	je 9001f
	next 4
22:	/* The pc moves. */
9001:	movswq 2(%r12), %rcx
	add %rcx, %r12
	jmp 9000f
9008:	add $4, %r12
9004:	add $4, %r12
9000:	movzbl (%r12), %eax
	lea 30f(%rip), %rcx
	jmp *(%rcx, %rax, 8)
	.cfi_endproc
	.size m\number, . - m\number

	.pushsection .data.rel.ro.sv_handlers, "aw"
30:	.quad 10b, 11b, 12b, 13b, 14b, 15b, 16b, 17b, 18b, 19b, 20b, 21b
	.popsection
	.pushsection .data.rel.ro.sv_next, "aw"
	.quad 22b
	.popsection
	.pushsection .data.rel.ro.sv_loops, "aw"
	.quad m\number
	.popsection
	.endm

	.pushsection .data.rel.ro.sv_handlers, "aw"
	.globl sv_handlers
sv_handlers:
	.popsection
	.pushsection .data.rel.ro.sv_next, "aw"
	.globl sv_next
sv_next:
	.popsection
	.pushsection .data.rel.ro.sv_loops, "aw"
	.globl sv_loops
sv_loops:
	.popsection

	.irp number, 00, 01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
	loop \number
	.endr

sv_code_end:
	.pushsection .data.rel.ro.sv_loops, "aw"
	.quad sv_code_end
	.popsection

/* uint64_t sv_invoke(struct thread *, struct method *, uint64_t a, uint64_t b): native code calls a method. */
	.text
	.globl sv_invoke
	.type sv_invoke, @function
sv_invoke:
	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	.cfi_offset %r13, -40
	.cfi_offset %r14, -48
	.cfi_offset %r15, -56
	mov %rdi, %r14
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	sub $8, %rsp
	pushq THREAD_LINK(%r14)
	pushq THREAD_NOTE(%r14)
	jmp sv_link
sv_linked:
	call *METHOD_INVOKE(%rdi)
	jmp sv_unlink
sv_unlinked:
	add $24, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size sv_invoke, . - sv_invoke

	.section .note.GNU-stack, "", @progbits
