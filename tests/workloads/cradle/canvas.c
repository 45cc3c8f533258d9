/* Which native methods has org.example.cradle.Canvas? They draw on the one framebuffer of the process. */
#include "jni_subset.h"
#include "raster.h"

static struct raster screen;

void Java_org_example_cradle_Canvas_clear(jni_env env, jni_class cls, int32_t top, int32_t bottom);
void Java_org_example_cradle_Canvas_drawCircle(jni_env env, jni_class cls, int32_t x, int32_t y, int32_t radius,
					       int32_t color);
void Java_org_example_cradle_Canvas_drawLine(jni_env env, jni_class cls, int32_t x0, int32_t y0, int32_t x1, int32_t y1,
					     int32_t width, int32_t color);
int32_t Java_org_example_cradle_Canvas_checksum(jni_env env, jni_class cls);

void Java_org_example_cradle_Canvas_clear(jni_env env, jni_class cls, int32_t top, int32_t bottom)
{
	(void)env;
	(void)cls;
	raster_clear(&screen, (uint32_t)top, (uint32_t)bottom);
}

void Java_org_example_cradle_Canvas_drawCircle(jni_env env, jni_class cls, int32_t x, int32_t y, int32_t radius,
					       int32_t color)
{
	(void)env;
	(void)cls;
	raster_fill_circle(&screen, x, y, radius, (uint32_t)color);
}

void Java_org_example_cradle_Canvas_drawLine(jni_env env, jni_class cls, int32_t x0, int32_t y0, int32_t x1, int32_t y1,
					     int32_t width, int32_t color)
{
	(void)env;
	(void)cls;
	raster_stroke_line(&screen, x0, y0, x1, y1, width, (uint32_t)color);
}

int32_t Java_org_example_cradle_Canvas_checksum(jni_env env, jni_class cls)
{
	(void)env;
	(void)cls;
	return (int32_t)raster_checksum(&screen);
}
