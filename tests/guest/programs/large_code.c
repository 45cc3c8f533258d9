// More code than a small instruction cache holds: functions that differ in constants, called in a changing order.
#include "../random.h"

#define STEP(n)                                                                                                        \
    static __attribute__((noinline)) uint32_t step##n(uint32_t x)                                                      \
    {                                                                                                                  \
        if (x & (1u << (n % 31)))                                                                                      \
            x = x * (2 * n + 12345) + (x >> (n % 7 + 1));                                                              \
        else                                                                                                           \
            x ^= (x << (n % 5 + 3)) + n * 77777u;                                                                      \
        for (int i = 0; i < n % 4; i++)                                                                                \
            x += (x >> 3) ^ (0x9e3779b9u * n);                                                                         \
        return x % 3 == n % 3 ? x + n : x - n;                                                                         \
    }
#define EIGHT(n) STEP(n##0) STEP(n##1) STEP(n##2) STEP(n##3) STEP(n##4) STEP(n##5) STEP(n##6) STEP(n##7)
EIGHT(1) EIGHT(2) EIGHT(3) EIGHT(4) EIGHT(5) EIGHT(6) EIGHT(7) EIGHT(8)

#define NAMES(n) step##n##0, step##n##1, step##n##2, step##n##3, step##n##4, step##n##5, step##n##6, step##n##7
static uint32_t (*const steps[64])(uint32_t) = {
    NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6), NAMES(7), NAMES(8),
};

int main(void)
{
    uint32_t value = 1;
    for (uint32_t i = 0; i < 5000; i++)
        value = steps[i % 5 == 0 ? random_word() % 64 : i % 64](value);
    return (int)value;
}
