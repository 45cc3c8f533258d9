// LZ77 with a hash of three bytes, there and back.
#include "../random.h"

enum { SIZE = 4000, TABLE = 512 };

static uint8_t input[SIZE], packed[2 * SIZE], output[SIZE];
static uint16_t latest[TABLE];

static unsigned hash(const uint8_t *p)
{
    return (((unsigned)p[0] << 6) ^ ((unsigned)p[1] << 3) ^ p[2]) * 2654435761u >> 23;
}

static unsigned pack(void)
{
    unsigned out = 0, in = 0;
    while (in < SIZE) {
        unsigned length = 0, distance = 0;
        if (in + 3 < SIZE) {
            unsigned key = hash(input + in), candidate = latest[key];
            latest[key] = (uint16_t)in;
            if (candidate < in && in - candidate < 4096) {
                while (length < 63 && in + length < SIZE && input[candidate + length] == input[in + length])
                    length++;
                distance = in - candidate;
            }
        }
        if (length >= 4) {
            packed[out++] = (uint8_t)(0x80 | length);
            packed[out++] = (uint8_t)(distance >> 8);
            packed[out++] = (uint8_t)distance;
            in += length;
        } else {
            packed[out++] = input[in++] & 0x7f;
        }
    }
    return out;
}

static unsigned unpack(unsigned size)
{
    unsigned out = 0;
    for (unsigned in = 0; in < size;) {
        uint8_t head = packed[in++];
        if (head & 0x80) {
            unsigned distance = (unsigned)packed[in] << 8 | packed[in + 1];
            in += 2;
            for (unsigned length = head & 0x3f; length > 0; length--, out++)
                output[out] = output[out - distance];
        } else {
            output[out++] = head;
        }
    }
    return out;
}

int main(void)
{
    static const char words[8][8] = {"alpha ", "beta ", "gamma ", "delta ", "if (", ") {\n", "x = ", ";\n"};
    unsigned filled = 0;
    while (filled < SIZE) {
        const char *word = words[random_word() >> 29];
        while (*word && filled < SIZE)
            input[filled++] = (uint8_t)*word++;
    }
    unsigned size = pack(), whole = unpack(size), wrong = 0;
    uint32_t sum = size;
    for (unsigned i = 0; i < SIZE; i++) {
        wrong += input[i] != output[i];
        sum = sum * 31 + output[i];
    }
    return (int)(sum + (whole == SIZE) + 1000 * wrong);
}
