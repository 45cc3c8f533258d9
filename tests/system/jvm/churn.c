/*
 * An agent that writes when a JVM's compiled code is where, as JVMTI has it. It uses nothing of varid.
 *
 * Churn.open(FILE) writes lines. TIME is of CLOCK_MONOTONIC, in nanoseconds:
 *   interpreter START SIZE
 *   load TIME START SIZE METHOD...    a compiled method: itself, then those that are inlined into it. It is there already.
 *   bytes START HEX                   the instructions of the method before it
 *   unload TIME START                 nothing executes it any more, and other code may be in its place already
 *   executes TIME TID COPY            the thread executes methods of a copy from now on. 0: of none
 *   end
 * A METHOD is the class's name as JVMTI has it, a dot, and its own.
 */
#define _GNU_SOURCE
#include <jvmti.h>
#include <jvmticmlr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Methods in one compiled method at most. */
#define MOST_METHODS 1024

static jvmtiEnv *jvmti;
static JavaVM *vm;
static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void release(void *memory)
{
	if (memory)
		(*jvmti)->Deallocate(jvmti, memory);
}

static void require(int is_so, const char *what)
{
	if (!is_so) {
		fprintf(stderr, "churn: %s\n", what);
		abort();
	}
}

static void write_method(JNIEnv *env, jmethodID method)
{
	char *name = NULL, *class_name = NULL;
	jclass class = NULL;
	require((*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL) == JVMTI_ERROR_NONE, "a method without a name");
	require((*jvmti)->GetMethodDeclaringClass(jvmti, method, &class) == JVMTI_ERROR_NONE, "a method without a class");
	require((*jvmti)->GetClassSignature(jvmti, class, &class_name, NULL) == JVMTI_ERROR_NONE, "a class without a name");
	fprintf(out, "\t%s.%s", class_name, name);
	release(name);
	release(class_name);
	(*env)->DeleteLocalRef(env, class);
}

/* Adds a method that is not among them yet. */
static int add(jmethodID *methods, int count, jmethodID method)
{
	for (int i = 0; i < count; i++)
		if (methods[i] == method)
			return count;
	require(count < MOST_METHODS, "too many methods are inlined");
	methods[count] = method;
	return count + 1;
}

static void JNICALL loaded(jvmtiEnv *env, jmethodID method, jint size, const void *address, jint map_length,
			   const jvmtiAddrLocationMap *map, const void *info)
{
	static jmethodID methods[MOST_METHODS];
	unsigned long long time = now();
	JNIEnv *jni = NULL;
	int count;
	(*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_1_8);
	pthread_mutex_lock(&lock);
	count = add(methods, 0, method);
	for (const jvmtiCompiledMethodLoadRecordHeader *record = info; record; record = record->next) {
		const jvmtiCompiledMethodLoadInlineRecord *inlined = (const void *)record;
		for (jint pc = 0; record->kind == JVMTI_CMLR_INLINE_INFO && pc < inlined->numpcs; pc++)
			for (jint i = 0; i < inlined->pcinfo[pc].numstackframes; i++)
				count = add(methods, count, inlined->pcinfo[pc].methods[i]);
	}
	fprintf(out, "load\t%llu\t%lx\t%d", time, (unsigned long)address, size);
	for (int i = 0; i < count; i++)
		write_method(jni, methods[i]);
	fprintf(out, "\nbytes\t%lx\t", (unsigned long)address);
	for (jint i = 0; i < size; i++)
		fprintf(out, "%02x", ((const unsigned char *)address)[i]);
	fputc('\n', out);
	pthread_mutex_unlock(&lock);
}

static void JNICALL unloaded(jvmtiEnv *env, jmethodID method, const void *address)
{
	unsigned long long time = now();
	pthread_mutex_lock(&lock);
	fprintf(out, "unload\t%llu\t%lx\n", time, (unsigned long)address);
	pthread_mutex_unlock(&lock);
}

static void JNICALL generated(jvmtiEnv *env, const char *name, const void *address, jint length)
{
	if (strcmp(name, "Interpreter"))
		return;
	pthread_mutex_lock(&lock);
	fprintf(out, "interpreter\t%lx\t%d\n", (unsigned long)address, length);
	pthread_mutex_unlock(&lock);
}

static void set(jvmtiEventMode mode, jvmtiEvent event)
{
	require((*jvmti)->SetEventNotificationMode(jvmti, mode, event, NULL) == JVMTI_ERROR_NONE, "no such event");
}

JNIEXPORT void JNICALL Java_Churn_open(JNIEnv *env, jclass class, jstring file)
{
	const char *path = (*env)->GetStringUTFChars(env, file, NULL);
	out = fopen(path, "w");
	require(out != NULL, "no log");
	(*env)->ReleaseStringUTFChars(env, file, path);
	set(JVMTI_ENABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	set(JVMTI_DISABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	set(JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_UNLOAD);
	set(JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
}

JNIEXPORT void JNICALL Java_Churn_executes(JNIEnv *env, jclass class, jint copy)
{
	pthread_mutex_lock(&lock);
	fprintf(out, "executes\t%llu\t%d\t%d\n", now(), gettid(), copy);
	pthread_mutex_unlock(&lock);
}

JNIEXPORT void JNICALL Java_Churn_redefine(JNIEnv *env, jclass class, jclass type, jbyteArray bytes)
{
	jvmtiClassDefinition definition;
	definition.klass = type;
	definition.class_byte_count = (*env)->GetArrayLength(env, bytes);
	definition.class_bytes = (const unsigned char *)(*env)->GetByteArrayElements(env, bytes, NULL);
	require((*jvmti)->RedefineClasses(jvmti, 1, &definition) == JVMTI_ERROR_NONE, "a class is not redefined");
	(*env)->ReleaseByteArrayElements(env, bytes, (jbyte *)definition.class_bytes, JNI_ABORT);
}

JNIEXPORT void JNICALL Java_Churn_close(JNIEnv *env, jclass class)
{
	set(JVMTI_DISABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	set(JVMTI_DISABLE, JVMTI_EVENT_COMPILED_METHOD_UNLOAD);
	pthread_mutex_lock(&lock);
	fputs("end\n", out);
	require(fflush(out) == 0, "the log cannot be written");
	pthread_mutex_unlock(&lock);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *java_vm, char *options, void *reserved)
{
	jvmtiCapabilities capabilities;
	jvmtiEventCallbacks callbacks;
	vm = java_vm;
	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK)
		return JNI_ERR;
	memset(&capabilities, 0, sizeof(capabilities));
	capabilities.can_generate_compiled_method_load_events = 1;
	capabilities.can_redefine_classes = 1;
	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.CompiledMethodLoad = loaded;
	callbacks.CompiledMethodUnload = unloaded;
	callbacks.DynamicCodeGenerated = generated;
	if ((*jvmti)->AddCapabilities(jvmti, &capabilities) != JVMTI_ERROR_NONE)
		return JNI_ERR;
	return (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
}
