// Loads and stores that are far from each other: strides, a chain of pointers, two arrays that share cache lines' sets.
#include "../random.h"

enum { WORDS = 2048 };

static uint32_t first[WORDS], second[WORDS];
static uint16_t chain[WORDS];

int main(void)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < WORDS; i++)
        chain[i] = (uint16_t)((i * 1237 + 511) % WORDS);
    for (uint32_t stride = 1; stride <= 64; stride *= 4)
        for (uint32_t i = 0; i < WORDS; i += stride) {
            first[i] += i;
            second[i] += first[i] + sum;
            sum += second[(i * stride) % WORDS];
        }
    uint32_t at = 0;
    for (uint32_t i = 0; i < 6000; i++) {
        at = chain[at];
        sum = sum * 5 + first[at];
    }
    return (int)sum;
}
