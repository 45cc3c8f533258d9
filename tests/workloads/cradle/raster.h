/* What can be drawn? Anti-aliased shapes in integer arithmetic.
 *
 * Coordinates and lengths are pixels times 256; a pixel's centre is at 128. Colours are 0xRRGGBB. */
#ifndef CRADLE_RASTER_H
#define CRADLE_RASTER_H

#include "framebuffer.h"

/* Draws a disc that is lit from the upper left. */
void raster_fill_circle(struct raster *raster, int32_t x, int32_t y, int32_t radius, uint32_t color);

/* Draws a line with butt ends. */
void raster_stroke_line(struct raster *raster, int32_t x0, int32_t y0, int32_t x1, int32_t y1, int32_t width,
			uint32_t color);

#endif
