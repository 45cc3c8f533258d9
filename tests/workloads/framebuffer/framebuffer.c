/* How is the framebuffer filled and folded? */
#include "framebuffer.h"

void raster_clear(struct raster *raster, uint32_t top, uint32_t bottom)
{
	for (uint32_t y = 0; y < RASTER_HEIGHT; y++) {
		uint32_t color = raster_mix(top, bottom, y * 256 / RASTER_HEIGHT);

		for (uint32_t x = 0; x < RASTER_WIDTH; x++)
			raster->pixels[y][x] = color;
	}
}

uint32_t raster_checksum(const struct raster *raster)
{
	uint32_t sum = 0;

	for (int32_t y = 0; y < RASTER_HEIGHT; y++)
		for (int32_t x = 0; x < RASTER_WIDTH; x++)
			sum = sum * 31 + raster->pixels[y][x];
	return sum;
}
