/* Which part of the Java Native Interface do the workloads' libraries use? Indexes of its function table are those of the specification
 * ("JNI Functions", table order), so that no JDK is needed to build them. */
#ifndef WORKLOADS_JNI_SUBSET_H
#define WORKLOADS_JNI_SUBSET_H

#include <stdint.h>

typedef const void *const *const *jni_env; /* points to a pointer to the function table */
typedef void *jni_class;
typedef struct jni_method_id *jni_method;

enum {
	JNI_GET_STATIC_METHOD_ID = 113,
	JNI_CALL_STATIC_INT_METHOD = 129,
};

#define JNI_FUNCTION(env, index) ((*(env))[index])

static inline jni_method jni_static_method(jni_env env, jni_class cls, const char *name, const char *signature)
{
	typedef jni_method (*function)(jni_env, jni_class, const char *, const char *);
	return ((function)(uintptr_t)JNI_FUNCTION(env, JNI_GET_STATIC_METHOD_ID))(env, cls, name, signature);
}

#endif
