/* What do the workloads' libraries draw on? A framebuffer of 32-bit pixels, 0xRRGGBB each. */
#ifndef WORKLOADS_FRAMEBUFFER_H
#define WORKLOADS_FRAMEBUFFER_H

#include <stdint.h>

enum { RASTER_WIDTH = 320, RASTER_HEIGHT = 240 };

struct raster {
	uint32_t pixels[RASTER_HEIGHT][RASTER_WIDTH];
};

/* Fills the framebuffer with a vertical gradient. */
void raster_clear(struct raster *raster, uint32_t top, uint32_t bottom);

/* Folds all pixels into one number: h * 31 + pixel, row by row. */
uint32_t raster_checksum(const struct raster *raster);

static inline int32_t raster_clamp(int32_t value, int32_t low, int32_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* a * (256 - weight) + b * weight, channel by channel; weight is 0 to 256. */
static inline uint32_t raster_mix(uint32_t a, uint32_t b, uint32_t weight)
{
	uint32_t color = 0;

	for (int shift = 0; shift < 24; shift += 8) {
		uint32_t from = a >> shift & 255, to = b >> shift & 255;

		color |= (from * (256 - weight) + to * weight) >> 8 << shift;
	}
	return color;
}

#endif
