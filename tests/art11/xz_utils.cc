// How does ART compress the debug information that it writes? Here by liblzma: Debian has no LZMA SDK to build against.

#include "elf/xz_utils.h"

#include <lzma.h>

#include "android-base/logging.h"

namespace art {

void XzCompress(ArrayRef<const uint8_t> src, std::vector<uint8_t>* dst, int level) {
  dst->resize(lzma_stream_buffer_bound(src.size()));
  size_t size = 0;
  CHECK_EQ(lzma_easy_buffer_encode(static_cast<uint32_t>(level), LZMA_CHECK_CRC32, nullptr, src.data(), src.size(),
                                   dst->data(), &size, dst->size()),
           LZMA_OK);
  dst->resize(size);
}

void XzDecompress(ArrayRef<const uint8_t> src, std::vector<uint8_t>* dst) {
  uint64_t memory = UINT64_MAX;
  size_t position = 0;
  size_t size = 0;
  lzma_ret result = LZMA_BUF_ERROR;
  for (dst->resize(src.size() * 4 + 4096); result == LZMA_BUF_ERROR; dst->resize(dst->size() * 2)) {
    position = 0;
    size = 0;
    result = lzma_stream_buffer_decode(&memory, 0, nullptr, src.data(), &position, src.size(), dst->data(), &size,
                                       dst->size());
  }
  CHECK_EQ(result, LZMA_OK);
  dst->resize(size);
}

}  // namespace art
