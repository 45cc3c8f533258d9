// Shifts by amounts in registers: rotations, bit fields, population counts.
#include "../random.h"

static uint32_t rotate(uint32_t value, uint32_t by)
{
    by &= 31;
    return by ? value << by | value >> (32 - by) : value;
}

static uint32_t ones(uint32_t value)
{
    uint32_t count = 0;
    for (; value; value &= value - 1)
        count++;
    return count;
}

static uint32_t field(const uint32_t *words, uint32_t position, uint32_t width)
{
    uint32_t low = words[position / 32] >> position % 32;
    if (position % 32 + width > 32)
        low |= words[position / 32 + 1] << (32 - position % 32);
    return low & ((1u << width) - 1);
}

int main(void)
{
    static uint32_t words[65];
    uint32_t sum = 0;
    for (int i = 0; i < 65; i++)
        words[i] = random_word();
    for (int round = 0; round < 8; round++) {
        uint32_t width = 3;
        for (uint32_t position = 0; position < 2000; position += width) {
            width = 3 + (sum & 15);
            sum = rotate(sum, position) + field(words, position, width);
        }
        for (int i = 0; i < 65; i++) {
            sum += ones(words[i]);
            words[i] = rotate(words[i], sum) ^ (uint32_t)((int32_t)words[i] >> (sum & 31));
        }
    }
    return (int)sum;
}
