// zlib packs and unpacks a text.
#include "heap.h"
#include "text.h"

#include <string.h>
#include <zlib.h>

enum { SIZE = 5000 };

static unsigned char text[SIZE], packed[2 * SIZE], unpacked[SIZE];

static void *allocate(void *opaque, unsigned count, unsigned size)
{
    (void)opaque;
    return heap_take((size_t)count * size);
}

// Memory is not used again.
static void release(void *opaque, void *memory)
{
    (void)opaque;
    (void)memory;
}

int main(void)
{
    fill_with_text((char *)text, SIZE);
    z_stream pack = {.zalloc = allocate, .zfree = release, .next_in = text, .avail_in = SIZE};
    pack.next_out = packed;
    pack.avail_out = sizeof packed;
    if (deflateInit2(&pack, 6, Z_DEFLATED, 12, 5, Z_DEFAULT_STRATEGY) != Z_OK || deflate(&pack, Z_FINISH) != Z_STREAM_END)
        return 1;
    unsigned size = pack.total_out;
    deflateEnd(&pack);
    z_stream unpack = {.zalloc = allocate, .zfree = release, .next_in = packed, .avail_in = size};
    unpack.next_out = unpacked;
    unpack.avail_out = SIZE;
    if (inflateInit2(&unpack, 12) != Z_OK || inflate(&unpack, Z_FINISH) != Z_STREAM_END)
        return 2;
    inflateEnd(&unpack);
    return memcmp(text, unpacked, SIZE) ? 3 : (int)checksum((char *)packed, size);
}
