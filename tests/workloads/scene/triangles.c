/* How is a triangle filled? Each pixel whose centre is on the inner side of its three edges, if nothing nearer was drawn there. */
#include "triangles.h"
#include <stdbool.h>
#include <string.h>

/* The side of an edge that a point is on, times its distance and the edge's length: positive inside. */
struct edge {
	int64_t value; /* at the centre of the pixel where its row starts */
	int64_t right, down; /* what one pixel more adds */
	bool inclusive; /* an edge of two triangles belongs to the one that has it at its left or top */
};

static struct edge edge_from(const struct vertex *from, const struct vertex *to, int32_t column, int32_t row)
{
	int64_t dx = to->x - from->x, dy = to->y - from->y;
	int64_t at_x = column * 256 + 128 - from->x, at_y = row * 256 + 128 - from->y;

	return (struct edge){ .value = dx * at_y - dy * at_x,
			      .right = -dy * 256,
			      .down = dx * 256,
			      .inclusive = dy < 0 || (dy == 0 && dx > 0) };
}

static bool inside(const struct edge *edge, int64_t value)
{
	return value > 0 || (value == 0 && edge->inclusive);
}

static int32_t least(int32_t a, int32_t b, int32_t c)
{
	int32_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

static int32_t most(int32_t a, int32_t b, int32_t c)
{
	return -least(-a, -b, -c);
}

static uint32_t in_fog(const struct scene *scene, uint32_t color, int32_t depth)
{
	int64_t distance = ((int64_t)1 << 36) / depth;

	if (scene->fog_far == scene->fog_near || distance <= scene->fog_near)
		return color;
	if (distance >= scene->fog_far)
		return scene->fog_color;
	return raster_mix(color, scene->fog_color,
			  (uint32_t)((distance - scene->fog_near) * 256 / (scene->fog_far - scene->fog_near)));
}

static void paint(struct scene *scene, int32_t column, int32_t row, int32_t depth, uint32_t color)
{
	uint32_t *pixel = &scene->raster.pixels[row][column];

	if (depth <= scene->depth[row][column])
		return;
	color = in_fog(scene, color, depth);
	if (scene->alpha < 256) {
		*pixel = raster_mix(*pixel, color, (uint32_t)scene->alpha);
	} else {
		*pixel = color;
		scene->depth[row][column] = depth;
	}
}

void scene_begin(struct scene *scene, uint32_t top, uint32_t bottom)
{
	raster_clear(&scene->raster, top, bottom);
	memset(scene->depth, 0, sizeof(scene->depth));
	scene->alpha = 256;
	scene->fog_near = scene->fog_far = 0;
}

void scene_triangle(struct scene *scene, const struct vertex *a, const struct vertex *b, const struct vertex *c,
		    uint32_t color)
{
	int64_t area = (int64_t)(b->x - a->x) * (c->y - a->y) - (int64_t)(c->x - a->x) * (b->y - a->y);
	int32_t left = raster_clamp(least(a->x, b->x, c->x) >> 8, 0, RASTER_WIDTH);
	int32_t right = raster_clamp((most(a->x, b->x, c->x) >> 8) + 1, 0, RASTER_WIDTH);
	int32_t top = raster_clamp(least(a->y, b->y, c->y) >> 8, 0, RASTER_HEIGHT);
	int32_t bottom = raster_clamp((most(a->y, b->y, c->y) >> 8) + 1, 0, RASTER_HEIGHT);
	struct edge ab, bc, ca;

	if (area <= 0)
		return;
	ab = edge_from(a, b, left, top);
	bc = edge_from(b, c, left, top);
	ca = edge_from(c, a, left, top);
	for (int32_t row = top; row < bottom; row++) {
		int64_t of_a = bc.value, of_b = ca.value, of_c = ab.value;

		for (int32_t column = left; column < right; column++) {
			if (inside(&bc, of_a) && inside(&ca, of_b) && inside(&ab, of_c)) {
				int64_t depth = (of_a * a->depth + of_b * b->depth + of_c * c->depth) / area;

				paint(scene, column, row, (int32_t)depth, color);
			}
			of_a += bc.right;
			of_b += ca.right;
			of_c += ab.right;
		}
		ab.value += ab.down;
		bc.value += bc.down;
		ca.value += ca.down;
	}
}
