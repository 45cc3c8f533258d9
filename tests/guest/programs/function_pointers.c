// Shapes with tables of functions, and a pipeline of functions on numbers.
#include "../random.h"

struct shape;

struct table {
    uint32_t (*area)(const struct shape *);
    uint32_t (*outline)(const struct shape *);
};

struct shape {
    const struct table *table;
    uint32_t a, b;
};

static uint32_t square_area(const struct shape *s) { return s->a * s->a; }
static uint32_t square_outline(const struct shape *s) { return 4 * s->a; }
static uint32_t oblong_area(const struct shape *s) { return s->a * s->b; }
static uint32_t oblong_outline(const struct shape *s) { return 2 * (s->a + s->b); }
static uint32_t circle_area(const struct shape *s) { return s->a * s->a * 355 / 113; }
static uint32_t circle_outline(const struct shape *s) { return 2 * s->a * 355 / 113; }

static const struct table tables[] = {
    {square_area, square_outline},
    {oblong_area, oblong_outline},
    {circle_area, circle_outline},
};

static uint32_t twice(uint32_t x) { return 2 * x; }
static uint32_t next(uint32_t x) { return x + 1; }
static uint32_t folded(uint32_t x) { return x ^ x >> 7; }
static uint32_t turned(uint32_t x) { return x << 5 | x >> 27; }

static uint32_t (*volatile const steps[])(uint32_t) = {twice, next, folded, turned, next, folded};

static struct shape shapes[64];

int main(void)
{
    for (int i = 0; i < 64; i++) {
        shapes[i].table = &tables[random_word() % 3];
        shapes[i].a = random_word() % 100;
        shapes[i].b = random_word() % 100;
    }
    uint32_t sum = 0;
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 64; i++)
            sum += shapes[i].table->area(&shapes[i]) - shapes[i].table->outline(&shapes[i]);
        for (unsigned i = 0; i < 60; i++)
            sum = steps[i % 6](sum);
    }
    return (int)sum;
}
