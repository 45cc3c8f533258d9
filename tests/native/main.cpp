// The program: asks the library, and inlines what its header has.
#include "shapes.hpp"

#include <cstdio>

using namespace shapes;

template <typename T>
static __attribute__((noinline)) T squares(unsigned count) {
    std::vector<T> numbers(count);
    std::iota(numbers.begin(), numbers.end(), T{1});
    return std::accumulate(numbers.begin(), numbers.end(), T{}, [](T sum, T one) { return sum + one * one; });
}

static auto counter() {
    return [count = 0L](long by) mutable { return count += by; };
}

int main(int argc, char **) {
    auto all = make(100u * static_cast<unsigned>(argc));
    auto count = counter();
    double large = visit(all, [&count](const Shape &shape) { return shape.area() > 20 && count(1) > 0; });
    for (auto &shape : all)
        shape->scale(1.5);
    Vector<float, 3> v{{1, 2, static_cast<float>(argc)}};
    auto w = static_cast<Vector<double, 3>>(v * 2.0f);
    std::printf("%f %f %f %ld\n", large, w.length(), total(1, 2.5, squares<int>(9), squares<double>(12)), count(0));
    for (const auto &[name, areas] : by_name(all))
        std::printf("%s %zu\n", name.c_str(), areas.size());
    std::vector<long> numbers(static_cast<size_t>(argc) * 1000);
    std::iota(numbers.begin(), numbers.end(), 1L);
    std::printf("%ld\n", checked_sum(numbers));
}
