// CRC-32 of a buffer, bit by bit and by a table.
#include "../random.h"

enum { SIZE = 1024 };

static uint8_t data[SIZE];
static uint32_t table[256];

static uint32_t by_bit(const uint8_t *p, uint32_t size)
{
    uint32_t crc = ~0u;
    while (size--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

static uint32_t by_table(const uint8_t *p, uint32_t size)
{
    uint32_t crc = ~0u;
    while (size--)
        crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
    return ~crc;
}

int main(void)
{
    for (uint32_t i = 0; i < SIZE; i++)
        data[i] = (uint8_t)random_word();
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xedb88320 : value >> 1;
        table[i] = value;
    }
    uint32_t sum = by_bit(data, SIZE);
    for (int round = 0; round < 4; round++)
        sum = sum * 3 + by_table(data + round, SIZE - 8);
    return (int)sum;
}
