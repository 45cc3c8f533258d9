// What the registrar loads at run time: functions without relocations.
long jit_leaf(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += i * i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

long jit_entry(long n)
{
    long sum = 0;
    for (long i = 0; i < 50; i++) {
        sum ^= n * i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}
