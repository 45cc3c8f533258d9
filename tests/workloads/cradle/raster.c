/* How is a shape drawn? Each pixel of its bounding box is blended by how much of it the shape covers: the distance of
 * its centre from the edge, cut off at half a pixel on both sides. */
#include "raster.h"

/* The largest number whose square is not above `value`. */
static uint32_t square_root(uint64_t value)
{
	uint64_t root = 0, bit = (uint64_t)1 << 40;

	while (bit > value)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (value >= root + bit) {
			value -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return (uint32_t)root;
}

static uint32_t distance(int32_t dx, int32_t dy)
{
	return square_root((uint64_t)((int64_t)dx * dx + (int64_t)dy * dy));
}

static void blend(uint32_t *pixel, uint32_t color, int32_t coverage)
{
	if (coverage > 0)
		*pixel = raster_mix(*pixel, color, (uint32_t)raster_clamp(coverage, 0, 256));
}

/* First and one past the last pixel that a stretch touches, within the framebuffer. */
static void pixels_between(int32_t low, int32_t high, int32_t limit, int32_t *first, int32_t *end)
{
	*first = raster_clamp((low >> 8) - 1, 0, limit);
	*end = raster_clamp((high >> 8) + 2, 0, limit);
}

void raster_fill_circle(struct raster *raster, int32_t x, int32_t y, int32_t radius, uint32_t color)
{
	int32_t left, right, top, bottom;
	int32_t light_x = x - radius / 3, light_y = y - radius / 3;

	if (radius <= 0)
		return;
	pixels_between(x - radius, x + radius, RASTER_WIDTH, &left, &right);
	pixels_between(y - radius, y + radius, RASTER_HEIGHT, &top, &bottom);
	for (int32_t row = top; row < bottom; row++) {
		for (int32_t column = left; column < right; column++) {
			int32_t at_x = column * 256 + 128, at_y = row * 256 + 128;
			int32_t coverage = radius + 128 - (int32_t)distance(at_x - x, at_y - y);

			if (coverage > 0) {
				int32_t shade = (int32_t)distance(at_x - light_x, at_y - light_y) * 128 / radius;

				blend(&raster->pixels[row][column], raster_mix(color, 0, (uint32_t)raster_clamp(shade, 0, 224)), coverage);
			}
		}
	}
}

void raster_stroke_line(struct raster *raster, int32_t x0, int32_t y0, int32_t x1, int32_t y1, int32_t width,
			uint32_t color)
{
	int32_t left, right, top, bottom;
	int64_t dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
	int64_t length = square_root((uint64_t)square);
	int32_t half = width / 2;

	if (length == 0)
		return;
	pixels_between((x0 < x1 ? x0 : x1) - half, (x0 < x1 ? x1 : x0) + half, RASTER_WIDTH, &left, &right);
	pixels_between((y0 < y1 ? y0 : y1) - half, (y0 < y1 ? y1 : y0) + half, RASTER_HEIGHT, &top, &bottom);
	for (int32_t row = top; row < bottom; row++) {
		for (int32_t column = left; column < right; column++) {
			int64_t at_x = column * 256 + 128 - x0, at_y = row * 256 + 128 - y0;
			int64_t along = at_x * dx + at_y * dy, across = at_x * dy - at_y * dx;

			if (along < 0 || along > square)
				continue;
			across = (across < 0 ? -across : across) / length;
			if (across < half + 128)
				blend(&raster->pixels[row][column], color, half + 128 - (int32_t)across);
		}
	}
}
