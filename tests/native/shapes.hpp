// Shapes: what main.cpp and shapes.cpp share, inlined into both.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace shapes {

template <typename T, unsigned N>
struct Vector {
    T at[N];

    T dot(const Vector &other) const {
        T sum{};
        for (unsigned i = 0; i < N; i++)
            sum += at[i] * other.at[i];
        return sum;
    }
    T length() const { return static_cast<T>(std::sqrt(static_cast<double>(dot(*this)))); }
    Vector operator*(T factor) const {
        Vector product = *this;
        for (T &one : product.at)
            one *= factor;
        return product;
    }
    template <typename To>
    explicit operator Vector<To, N>() const {
        Vector<To, N> other{};
        std::transform(at, at + N, other.at, [](T one) { return static_cast<To>(one); });
        return other;
    }
};

class Shape {
public:
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual std::string name() const = 0;
    virtual void scale(double factor) = 0;
};

class Named {
public:
    explicit Named(std::string text) : text_(std::move(text)) {}
    virtual ~Named() = default;
    virtual const std::string &text() const { return text_; }

private:
    std::string text_;
};

// Two bases: thunks.
class Polygon : public Shape, public Named {
public:
    Polygon(std::string text, std::vector<Vector<double, 2>> corners);
    double area() const override;
    std::string name() const override;
    void scale(double factor) override;
    const std::string &text() const override;

private:
    std::vector<Vector<double, 2>> corners_;
};

class Circle final : public Shape {
public:
    explicit Circle(double radius) : radius_(radius) {}
    double area() const override { return 3.14159265358979 * radius_ * radius_; }
    std::string name() const override;
    void scale(double factor) override { radius_ *= factor; }

private:
    double radius_;
};

using Visitor = std::function<bool(const Shape &)>;

std::vector<std::unique_ptr<Shape>> make(unsigned count);
double visit(const std::vector<std::unique_ptr<Shape>> &all, const Visitor &visitor);
std::map<std::string, std::vector<double>> by_name(const std::vector<std::unique_ptr<Shape>> &all);

template <typename... Parts>
auto total(const Parts &...parts) -> decltype((parts + ...)) {
    return (parts + ...);
}

long checked_sum(const std::vector<long> &numbers);

}  // namespace shapes
