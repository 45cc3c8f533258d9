// The library: polygons and circles.
#include "shapes.hpp"

#include <stdexcept>

namespace shapes {
namespace {

struct Cross {
    double operator()(const Vector<double, 2> &a, const Vector<double, 2> &b) const {
        return a.at[0] * b.at[1] - a.at[1] * b.at[0];
    }
};

template <typename Each>
double around(const std::vector<Vector<double, 2>> &corners, Each each) {
    double sum = 0;
    for (size_t i = 0; i < corners.size(); i++)
        sum += each(corners[i], corners[(i + 1) % corners.size()]);
    return sum;
}

__attribute__((noinline)) std::string describe(const char *what, size_t count) {
    return std::string(what) + " of " + std::to_string(count);
}

}  // namespace

Polygon::Polygon(std::string text, std::vector<Vector<double, 2>> corners)
    : Named(std::move(text)), corners_(std::move(corners)) {
    if (corners_.size() < 3)
        throw std::invalid_argument("a polygon has three corners: " + describe("this one", corners_.size()));
}

double Polygon::area() const { return std::abs(around(corners_, Cross{})) / 2; }

std::string Polygon::name() const {
    double edge = around(corners_, [](const auto &a, const auto &b) {
        return Vector<double, 2>{{b.at[0] - a.at[0], b.at[1] - a.at[1]}}.length();
    });
    return describe(edge > 10 ? "large" : "small", corners_.size());
}

void Polygon::scale(double factor) {
    std::transform(corners_.begin(), corners_.end(), corners_.begin(),
                   [factor](const Vector<double, 2> &corner) { return corner * factor; });
}

const std::string &Polygon::text() const { return Named::text(); }

std::string Circle::name() const { return describe("circle", static_cast<size_t>(radius_)); }

std::vector<std::unique_ptr<Shape>> make(unsigned count) {
    std::vector<std::unique_ptr<Shape>> all;
    for (unsigned i = 0; i < count; i++) {
        if (i % 3 == 0) {
            all.push_back(std::make_unique<Circle>(i + 1.0));
            continue;
        }
        std::vector<Vector<double, 2>> corners;
        for (unsigned k = 0; k < i % 7 + 3; k++)
            corners.push_back({{std::cos(k), std::sin(k) * i}});
        all.push_back(std::make_unique<Polygon>("polygon " + std::to_string(i), corners));
    }
    std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a->area() < b->area(); });
    return all;
}

double visit(const std::vector<std::unique_ptr<Shape>> &all, const Visitor &visitor) {
    return std::accumulate(all.begin(), all.end(), 0.0, [&visitor](double sum, const auto &shape) {
        return visitor(*shape) ? sum + shape->area() : sum;
    });
}

std::map<std::string, std::vector<double>> by_name(const std::vector<std::unique_ptr<Shape>> &all) {
    std::map<std::string, std::vector<double>> found;
    for (const auto &shape : all)
        found[shape->name()].push_back(shape->area());
    for (auto &[name, areas] : found)
        std::stable_sort(areas.begin(), areas.end(), std::greater<>());
    return found;
}

}  // namespace shapes
