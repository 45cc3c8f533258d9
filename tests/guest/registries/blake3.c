// BLAKE3 hashes a text.
#include "text.h"

#include <blake3.h>

enum { SIZE = 12000 };

static char text[SIZE];

int main(void)
{
    fill_with_text(text, SIZE);
    blake3_hasher hasher;
    blake3_hasher_init(&hasher);
    // Parts that end within a block and within a chunk.
    for (size_t done = 0, part = 1; done < SIZE; done += part, part = part * 3 + 1) {
        if (part > SIZE - done)
            part = SIZE - done;
        blake3_hasher_update(&hasher, text + done, part);
    }
    uint8_t digest[BLAKE3_OUT_LEN];
    blake3_hasher_finalize(&hasher, digest, sizeof digest);
    return (int)checksum((char *)digest, sizeof digest);
}
