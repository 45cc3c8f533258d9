// A function with a part that is hardly ever run, and copies of one for its arguments.
#include "shapes.hpp"

#include <cstdio>
#include <cstdlib>

namespace shapes {

static __attribute__((cold, noinline)) void fail(const char *why, long number) {
    std::fprintf(stderr, "%s: %ld\n", why, number);
    std::abort();
}

static inline long checked(long sum, long number) {
    long result;
    if (__builtin_add_overflow(sum, number, &result))
        fail("overflow at", number);
    return result;
}

static __attribute__((noinline)) long fold(const std::vector<long> &numbers, int step, long start) {
    for (size_t i = 0; i < numbers.size(); i += static_cast<size_t>(step))
        start = checked(start, numbers[i]);
    if (start < 0) {
        std::fprintf(stderr, "negative\n");
        std::exit(3);
    }
    return start;
}

long checked_sum(const std::vector<long> &numbers) { return fold(numbers, 1, 0) + fold(numbers, 2, 0); }

}  // namespace shapes
