// A block cipher of additions, rotations and exclusive ors, and a hash made of it.
#include "../random.h"

static uint32_t rotate(uint32_t value, int by)
{
    return value << by | value >> (32 - by);
}

static void quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a += *b; *d = rotate(*d ^ *a, 16);
    *c += *d; *b = rotate(*b ^ *c, 12);
    *a += *b; *d = rotate(*d ^ *a, 8);
    *c += *d; *b = rotate(*b ^ *c, 7);
}

static void block(uint32_t state[16])
{
    uint32_t x[16];
    for (int i = 0; i < 16; i++)
        x[i] = state[i];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 4; i++)
            quarter(x + i, x + i + 4, x + i + 8, x + i + 12);
        for (int i = 0; i < 4; i++)
            quarter(x + i, x + 4 + (i + 1) % 4, x + 8 + (i + 2) % 4, x + 12 + (i + 3) % 4);
    }
    for (int i = 0; i < 16; i++)
        state[i] += x[i];
}

int main(void)
{
    static uint32_t state[16];
    for (int i = 0; i < 16; i++)
        state[i] = random_word();
    for (int i = 0; i < 50; i++) {
        state[i % 16] ^= (uint32_t)i;
        block(state);
    }
    return (int)(state[0] ^ state[5] ^ state[10] ^ state[15]);
}
