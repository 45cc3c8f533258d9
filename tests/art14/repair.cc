// Which defects of Debian 13's libart are mended before dex2oat creates a VM? Those that artvm mends: tests/artvm/src/release/art14/repair.rs
// says what is wrong.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
// art::BitVector::BitVector(bool, Allocator*, uint32_t, uint32_t*) and the table of art::BitVector.
void _ZN3art9BitVectorC1EbPNS_9AllocatorEjPj();
extern void* _ZTVN3art9BitVectorE[];
// art::ArtMethod::Invoke(Thread*, uint32_t* args, uint32_t args_size, JValue*, const char*).
void _ZN3art9ArtMethod6InvokeEPNS_6ThreadEPjjPNS_6JValueEPKc();
void invoke_with_whole_words();
const void* invoke_rest;
}

// args_size is rounded down to whole words; what the jump replaces; the rest of Invoke.
asm(".text\n"
    "invoke_with_whole_words:\n"
    "  and $-4, %ecx\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  push %r15\n"
    "  push %r14\n"
    "  push %r13\n"
    "  jmp *invoke_rest(%rip)\n");

namespace {

// endbr64, then what invoke_with_whole_words does.
constexpr unsigned char kInvokeStart[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55};

struct BitVector {  // libartbase/base/bit_vector.h
  void** functions;
  uint32_t* storage;
  uint32_t storage_size;
  void* allocator;
  bool expandable;
};

void new_bit_vector(BitVector* vector, bool expandable, void* allocator, uint32_t storage_size, uint32_t* storage) {
  if (storage != nullptr) {
    memset(storage, 0, storage_size * sizeof(uint32_t));
  }
  // A table of C++ has two words before its functions.
  *vector = {_ZTVN3art9BitVectorE + 2, storage, storage_size, allocator, expandable};
}

template <typename From, typename To>
void replace(From* from, To* to) {
  unsigned char jump[14] = {0xff, 0x25};  // jmp *0(%rip), then the address
  memcpy(jump + 6, &to, sizeof(to));
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (memory < 0 || pwrite(memory, jump, sizeof(jump), reinterpret_cast<off_t>(from)) != sizeof(jump)) {
    perror("dex2oat: /proc/self/mem");
    exit(EXIT_FAILURE);
  }
  close(memory);
}

__attribute__((constructor)) void repair() {
  const auto* invoke = reinterpret_cast<const unsigned char*>(_ZN3art9ArtMethod6InvokeEPNS_6ThreadEPjjPNS_6JValueEPKc);
  if (memcmp(invoke, kInvokeStart, sizeof(kInvokeStart)) != 0) {
    fputs("dex2oat: art::ArtMethod::Invoke of libart begins otherwise than expected\n", stderr);
    exit(EXIT_FAILURE);
  }
  invoke_rest = invoke + sizeof(kInvokeStart);
  replace(_ZN3art9ArtMethod6InvokeEPNS_6ThreadEPjjPNS_6JValueEPKc, invoke_with_whole_words);
  replace(_ZN3art9BitVectorC1EbPNS_9AllocatorEjPj, new_bit_vector);
}

}  // namespace
