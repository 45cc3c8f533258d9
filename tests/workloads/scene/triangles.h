/* How is a solid drawn? As triangles with a depth buffer, fog and translucence, in integer arithmetic.
 *
 * Coordinates are pixels times 256; a pixel's centre is at 128. A depth is 2^36 over the distance from the eye, so that it is
 * linear on the screen; a distance has 65536 a unit. Colours are 0xRRGGBB. */
#ifndef SCENE_TRIANGLES_H
#define SCENE_TRIANGLES_H

#include "framebuffer.h"

struct vertex {
	int32_t x, y, depth;
};

struct scene {
	struct raster raster;
	int32_t depth[RASTER_HEIGHT][RASTER_WIDTH]; /* of the nearest solid so far; 0: none */
	int32_t alpha; /* 256: opaque; less: what is behind shines through and stays the nearest */
	int32_t fog_near, fog_far; /* distances where fog begins and where it is all that is seen; equal: none */
	uint32_t fog_color;
};

/* An empty scene before a vertical gradient; opaque, without fog. */
void scene_begin(struct scene *scene, uint32_t top, uint32_t bottom);

/* Draws a triangle whose vertices go clockwise on the screen; others are seen from behind and left out. */
void scene_triangle(struct scene *scene, const struct vertex *a, const struct vertex *b, const struct vertex *c,
		    uint32_t color);

#endif
