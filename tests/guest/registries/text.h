// A text that looks like English to a compressor, the same in each run.
#pragma once

#include "../random.h"

#include <stddef.h>

static inline void fill_with_text(char *text, size_t size)
{
    static const char words[16][10] = {
        "the ",   "cycle ", "of ",     "a ",     "target ", "is ",   "counted ", "when ",
        "block ", "ends, ", "and so ", "cache ", "miss. ",  "then ", "branch ",  "takes\n",
    };
    for (size_t filled = 0; filled < size;)
        for (const char *word = words[random_word() >> 28]; *word && filled < size; word++)
            text[filled++] = *word;
}

// Returns a number that depends on each byte.
static inline uint32_t checksum(const char *bytes, size_t size)
{
    uint32_t sum = (uint32_t)size;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}
