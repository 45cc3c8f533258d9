/* A call chain of known shape that stops in the middle and shows itself: what an unwinder must restore is
 * known here, because the code below put it there. Built with -O2 -fomit-frame-pointer. x86-64. */
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

/* rbx, rbp, r12 to r15, rsp, rip. */
struct registers {
	uint64_t values[8];
};

typedef void (*stop)(void *context, const struct registers *registers);

/* Calls stop(context, registers) with the registers as its caller has them behind the call. */
void show_registers(struct registers *registers, stop stop, void *context);
__asm__(".text\n"
	".type show_registers, @function\n"
	"show_registers:\n"
	".cfi_startproc\n"
	"	mov %rbx, (%rdi)\n"
	"	mov %rbp, 8(%rdi)\n"
	"	mov %r12, 16(%rdi)\n"
	"	mov %r13, 24(%rdi)\n"
	"	mov %r14, 32(%rdi)\n"
	"	mov %r15, 40(%rdi)\n"
	"	lea 8(%rsp), %rax\n"
	"	mov %rax, 48(%rdi)\n"
	"	mov (%rsp), %rax\n"
	"	mov %rax, 56(%rdi)\n"
	"	mov %rsi, %rax\n"
	"	mov %rdi, %rsi\n"
	"	mov %rdx, %rdi\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call *%rax\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size show_registers, . - show_registers\n");

/* Spoils every register that it saves: only its rules lead back to their values. */
__attribute__((noinline, used)) static void inner(stop stop, void *context)
{
	struct registers registers;
	volatile char space[200];

	space[0] = 1;
	__asm__ volatile("mov $1, %%ebx; mov $2, %%ebp; mov $3, %%r12d; mov $4, %%r13d" ::: "rbx", "rbp", "r12", "r13");
	show_registers(&registers, stop, context);
	space[1] = 2;
}

/* A frame whose size only a frame pointer knows. */
__attribute__((noinline, used)) static void dynamic(int bytes, stop stop, void *context)
{
	char *space = alloca(bytes);

	memset(space, 0x5a, bytes);
	__asm__ volatile("mov $5, %%r14d; mov $6, %%r15d" : : "r"(space) : "r14", "r15", "memory");
	inner(stop, context);
	__asm__ volatile("" : : "r"(space) : "memory");
}

__attribute__((noinline, used)) static int recursive(int depth, stop stop, void *context)
{
	if (depth == 0)
		dynamic(300, stop, context);
	else
		depth += recursive(depth - 1, stop, context);
	__asm__ volatile("" : "+r"(depth));
	return depth + 1;
}

/* with_values(values, depth, stop, context): calls recursive with the six values in rbx, rbp, r12 to r15. */
__asm__(".text\n"
	".globl with_values\n"
	".type with_values, @function\n"
	"with_values:\n"
	".cfi_startproc\n"
	"	push %rbx\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset rbx, 0\n"
	"	push %rbp\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset rbp, 0\n"
	"	push %r12\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset r12, 0\n"
	"	push %r13\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset r13, 0\n"
	"	push %r14\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset r14, 0\n"
	"	push %r15\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset r15, 0\n"
	"	sub $8, %rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	mov (%rdi), %rbx\n"
	"	mov 8(%rdi), %rbp\n"
	"	mov 16(%rdi), %r12\n"
	"	mov 24(%rdi), %r13\n"
	"	mov 32(%rdi), %r14\n"
	"	mov 40(%rdi), %r15\n"
	"	mov %esi, %edi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	call recursive\n"
	".globl with_values_called\n"
	"with_values_called:\n"
	"	add $8, %rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %r15\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore r15\n"
	"	pop %r14\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore r14\n"
	"	pop %r13\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore r13\n"
	"	pop %r12\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore r12\n"
	"	pop %rbp\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore rbp\n"
	"	pop %rbx\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore rbx\n"
	"	ret\n"
	".cfi_endproc\n"
	".size with_values, . - with_values\n");

static __thread stop signal_stop;
static __thread void *signal_context;

static void handler(int number)
{
	(void)number;
	inner(signal_stop, signal_context);
}

/* The chain goes through a signal's frame, whose rules are expressions. The handler runs on an alternate stack if there is one. */
int in_signal(stop stop, void *context, void *alternate, unsigned long size)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = alternate ? SA_ONSTACK : 0 }, before;
	stack_t on = { .ss_sp = alternate, .ss_size = size }, stack_before;
	int result;

	signal_stop = stop;
	signal_context = context;
	if (alternate && sigaltstack(&on, &stack_before))
		return -1;
	if (sigaction(SIGUSR2, &action, &before))
		return -1;
	raise(SIGUSR2);
	result = sigaction(SIGUSR2, &before, 0);
	return alternate ? result | sigaltstack(&stack_before, 0) : result;
}
