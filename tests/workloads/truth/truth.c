/* Which native code do managed frames call, and which calls managed code again? */
#include "jni_subset.h"

typedef int32_t (*call_static_int)(jni_env, jni_class, jni_method, ...);

/* Work of its own on both sides of the call, so that samples see this frame as a leaf too. */
static int32_t stir(int32_t value)
{
	uint32_t x = (uint32_t)value;

	for (int n = 0; n < 200; n++)
		x = x * 69069u + 1u;
	return (int32_t)x;
}

/* A native function between the JNI entry and the call back. */
static __attribute__((noinline)) int32_t call_back(jni_env env, jni_class cls, int32_t levels, int32_t x)
{
	jni_method back = jni_static_method(env, cls, "back", "(II)I");
	call_static_int call = (call_static_int)(uintptr_t)JNI_FUNCTION(env, JNI_CALL_STATIC_INT_METHOD);

	return stir(call(env, cls, back, levels, stir(x)));
}

__attribute__((visibility("default"))) int32_t Java_org_example_truth_Native_bounce(jni_env env, jni_class cls,
										    int32_t levels, int32_t x)
{
	/* The stirring after the call also keeps this frame on the stack: no tail call. */
	return call_back(env, cls, levels, stir(x)) ^ 0x5a;
}
