// Functions that call themselves: Fibonacci, Ackermann, Hanoi, queens on a board.
#include <stdint.h>

static uint32_t fibonacci(uint32_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static uint32_t ackermann(uint32_t m, uint32_t n)
{
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static uint32_t hanoi(int disks, int from, int to)
{
    if (disks == 0)
        return 0;
    int other = 6 - from - to;
    return hanoi(disks - 1, from, other) * 3 + hanoi(disks - 1, other, to) + (uint32_t)(from * to);
}

static uint32_t queens(uint32_t all, uint32_t columns, uint32_t left, uint32_t right)
{
    if (columns == all)
        return 1;
    uint32_t count = 0;
    for (uint32_t open = all & ~(columns | left | right); open; open &= open - 1) {
        uint32_t bit = open & -open;
        count += queens(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

int main(void)
{
    return (int)(fibonacci(17) + 31 * ackermann(2, 40) + 17 * hanoi(10, 1, 3) + 7 * queens(0x7f, 0, 0, 0));
}
