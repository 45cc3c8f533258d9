// bzip2 packs and unpacks a text.
#include "heap.h"
#include "text.h"

#include <bzlib.h>
#include <string.h>

enum { SIZE = 1500 };

static char text[SIZE], packed[2 * SIZE], unpacked[SIZE];

void bz_internal_error(int error)
{
    (void)error;
    __builtin_trap();
}

static void *allocate(void *opaque, int count, int size)
{
    (void)opaque;
    return heap_take((size_t)count * (size_t)size);
}

// Memory is not used again.
static void release(void *opaque, void *memory)
{
    (void)opaque;
    (void)memory;
}

int main(void)
{
    fill_with_text(text, SIZE);
    bz_stream stream = {.bzalloc = allocate, .bzfree = release};
    stream.next_in = text;
    stream.avail_in = SIZE;
    stream.next_out = packed;
    stream.avail_out = sizeof packed;
    if (BZ2_bzCompressInit(&stream, 1, 0, 30) != BZ_OK || BZ2_bzCompress(&stream, BZ_FINISH) != BZ_STREAM_END)
        return 1;
    unsigned size = stream.total_out_lo32;
    BZ2_bzCompressEnd(&stream);
    bz_stream back = {.bzalloc = allocate, .bzfree = release};
    back.next_in = packed;
    back.avail_in = size;
    back.next_out = unpacked;
    back.avail_out = SIZE;
    if (BZ2_bzDecompressInit(&back, 0, 0) != BZ_OK || BZ2_bzDecompress(&back) != BZ_STREAM_END)
        return 2;
    BZ2_bzDecompressEnd(&back);
    return memcmp(text, unpacked, SIZE) ? 3 : (int)checksum(packed, size);
}
