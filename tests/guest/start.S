# Calls main, and exits with its result.
    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_end
    li a0, 0
    li a1, 0
    call main
    li a7, 93
    ecall
    .size _start, . - _start
