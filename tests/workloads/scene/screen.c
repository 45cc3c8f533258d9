/* Which native methods has org.example.scene.Screen? They draw in the one scene of the process. */
#include "jni_subset.h"
#include "triangles.h"

static struct scene scene;

void Java_org_example_scene_Screen_begin(jni_env env, jni_class cls, int32_t top, int32_t bottom);
void Java_org_example_scene_Screen_fog(jni_env env, jni_class cls, int32_t near, int32_t far, int32_t color);
void Java_org_example_scene_Screen_alpha(jni_env env, jni_class cls, int32_t alpha);
void Java_org_example_scene_Screen_triangle(jni_env env, jni_class cls, int32_t ax, int32_t ay, int32_t az, int32_t bx,
					    int32_t by, int32_t bz, int32_t cx, int32_t cy, int32_t cz, int32_t color);
int32_t Java_org_example_scene_Screen_checksum(jni_env env, jni_class cls);

void Java_org_example_scene_Screen_begin(jni_env env, jni_class cls, int32_t top, int32_t bottom)
{
	(void)env;
	(void)cls;
	scene_begin(&scene, (uint32_t)top, (uint32_t)bottom);
}

void Java_org_example_scene_Screen_fog(jni_env env, jni_class cls, int32_t near, int32_t far, int32_t color)
{
	(void)env;
	(void)cls;
	scene.fog_near = near;
	scene.fog_far = far;
	scene.fog_color = (uint32_t)color;
}

void Java_org_example_scene_Screen_alpha(jni_env env, jni_class cls, int32_t alpha)
{
	(void)env;
	(void)cls;
	scene.alpha = alpha;
}

void Java_org_example_scene_Screen_triangle(jni_env env, jni_class cls, int32_t ax, int32_t ay, int32_t az, int32_t bx,
					    int32_t by, int32_t bz, int32_t cx, int32_t cy, int32_t cz, int32_t color)
{
	(void)env;
	(void)cls;
	scene_triangle(&scene, &(struct vertex){ ax, ay, az }, &(struct vertex){ bx, by, bz },
		       &(struct vertex){ cx, cy, cz }, (uint32_t)color);
}

int32_t Java_org_example_scene_Screen_checksum(jni_env env, jni_class cls)
{
	(void)env;
	(void)cls;
	return (int32_t)raster_checksum(&scene.raster);
}
