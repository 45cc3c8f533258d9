// Primes by a sieve, and sums over their gaps.
#include <stdint.h>

enum { LIMIT = 6000 };

static uint8_t composite[LIMIT];

int main(void)
{
    uint32_t sum = 0;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < LIMIT; i++)
            composite[i] = 0;
        uint32_t last = 2;
        for (uint32_t i = 2; i < LIMIT; i++) {
            if (composite[i])
                continue;
            for (uint32_t multiple = i + i; multiple < LIMIT; multiple += i)
                composite[multiple] = 1;
            sum = sum * 31 + (i - last) + round;
            last = i;
        }
    }
    return (int)sum;
}
