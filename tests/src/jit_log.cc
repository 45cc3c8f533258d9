/*
 * Which code does ART's JIT write, and when? Preloaded, this stands before JitCodeCache::Commit of ART 11 and 14 on x86-64, which is called when
 * memory is reserved for the code and before any thread can execute it. For each call it appends a record to the file that JIT_LOG names,
 * in the format of perf's jitdump: the time (CLOCK_MONOTONIC) is that of the call. ART's own log has the time when the code may run
 * already, and while ART writes it no code is collected.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#define COMMIT                                                                                                                            \
	"_ZN3art3jit12JitCodeCache6CommitEPNS_6ThreadEPNS0_15JitMemoryRegionEPNS_9ArtMethodENS_8ArrayRefIKhEESA_SA_RKSt6vectorINS_"       \
	"6HandleINS_6mirror6ObjectEEESaISF_EESA_"
#define CHA_LIST "RKSt3setIS7_St4lessIS7_ENS_21ArenaAllocatorAdapterIS7_EEE"
/* What follows the arguments that are looked at, which are the same in both. */
#define COMMIT_11 COMMIT "bb" CHA_LIST
#define COMMIT_14 COMMIT "RKSB_IhSaIhEEbNS_15CompilationKindEb" CHA_LIST
#define PRETTY_METHOD "_ZN3art9ArtMethod12PrettyMethodB5cxx11Eb"

namespace {

/* Bytes before the code: its header, so large that the code is aligned. */
constexpr uint64_t HEADER = 16;

struct Record {
	uint32_t event, size;
	uint64_t time;
	uint32_t process, thread;
	uint64_t zero, address, code_size, number;
};

void *symbol(const char *name, const char *other)
{
	void *found = dlsym(RTLD_NEXT, name);
	if (!found)
		found = dlsym(RTLD_NEXT, other);
	if (!found)
		abort();
	return found;
}

} // namespace

extern "C" void *jit_log_commit(void *method, uint64_t memory, const void *code, uint64_t size)
{
	using PrettyMethod = std::string (*)(void *, bool);
	static void *const commit = symbol(COMMIT_11, COMMIT_14);
	static const auto pretty_method = reinterpret_cast<PrettyMethod>(symbol(PRETTY_METHOD, PRETTY_METHOD));
	static const int file = open(getenv("JIT_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	std::string name = pretty_method(method, true);
	Record record = {};
	record.size = static_cast<uint32_t>(sizeof record + name.size() + 1 + size);
	record.time = static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
	record.process = static_cast<uint32_t>(getpid());
	record.address = memory + HEADER;
	record.code_size = size;
	iovec parts[] = {{&record, sizeof record}, {name.data(), name.size() + 1}, {const_cast<void *>(code), size}};
	if (writev(file, parts, 3) != static_cast<ssize_t>(record.size))
		abort();
	return commit;
}

/* The fourth argument is the method, the fifth is where the memory is; the first two on the stack are the code and its size. All of them
 * go on to the real one. */
__asm__(".text\n.globl " COMMIT_11 "\n.type " COMMIT_11 ", @function\n.globl " COMMIT_14 "\n.type " COMMIT_14 ", @function\n"
	COMMIT_11 ":\n" COMMIT_14 ":\n"
	"push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\nsub $8, %rsp\n"
	"mov %rcx, %rdi\nmov %r8, %rsi\nmov 64(%rsp), %rdx\nmov 72(%rsp), %rcx\ncall jit_log_commit@PLT\n"
	"add $8, %rsp\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"
	"jmp *%rax\n.size " COMMIT_11 ", .-" COMMIT_11 "\n.size " COMMIT_14 ", .-" COMMIT_14 "\n");
