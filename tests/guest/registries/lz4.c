// LZ4 packs and unpacks a text.
#include "text.h"

#include <lz4.h>
#include <string.h>

enum { SIZE = 12000 };

static char text[SIZE], packed[2 * SIZE], unpacked[SIZE];

int main(void)
{
    fill_with_text(text, SIZE);
    int size = LZ4_compress_default(text, packed, SIZE, sizeof packed);
    if (size <= 0 || LZ4_decompress_safe(packed, unpacked, size, SIZE) != SIZE)
        return 1;
    return memcmp(text, unpacked, SIZE) ? 2 : (int)checksum(packed, (size_t)size);
}
