/*
 * An agent that writes which methods each code address of a JVM executes, as JVMTI has it. It uses nothing of varid.
 *
 * Inlines.write(FILE) writes tab-separated lines:
 *   method ID CLASS NAME SIGNATURE MODIFIERS BYTES SOURCE LINES   BYTES: of bytecode, -1: none; LINES: BCI:LINE with commas
 *   code ADDRESS SIZE ID                                          a compiled method that exists
 *   pc ADDRESS ID:BCI...                                          of the code above, innermost first
 *   stub ADDRESS SIZE NAME                                        other code
 * FILE.changes then gets a line with the address of each compiled method that comes or goes later.
 */
#include <jvmti.h>
#include <jvmticmlr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jvmtiEnv *jvmti;
static JavaVM *vm;
static FILE *out, *changes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define SLOTS (1 << 18)
static jmethodID known[SLOTS];
static int ids[SLOTS];
static int count;

static void release(void *memory)
{
	if (memory)
		(*jvmti)->Deallocate(jvmti, memory);
}

static void write_lines(jmethodID method)
{
	jvmtiLineNumberEntry *lines = NULL;
	jint entries = 0;
	if ((*jvmti)->GetLineNumberTable(jvmti, method, &entries, &lines) != JVMTI_ERROR_NONE)
		entries = 0;
	for (jint i = 0; i < entries; i++)
		fprintf(out, "%s%d:%d", i ? "," : "", (int)lines[i].start_location, lines[i].line_number);
	release(lines);
	fputc('\n', out);
}

static void write_method(int id, jmethodID method)
{
	char *name = NULL, *signature = NULL, *class_name = NULL, *source = NULL;
	jclass class = NULL;
	jint modifiers = 0;
	jlocation start = 0, end = -1;
	JNIEnv *env;
	(*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8);
	(*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL);
	(*jvmti)->GetMethodDeclaringClass(jvmti, method, &class);
	(*jvmti)->GetMethodModifiers(jvmti, method, &modifiers);
	(*jvmti)->GetMethodLocation(jvmti, method, &start, &end);
	if (class) {
		(*jvmti)->GetClassSignature(jvmti, class, &class_name, NULL);
		if ((*jvmti)->GetSourceFileName(jvmti, class, &source) != JVMTI_ERROR_NONE)
			source = NULL;
	}
	fprintf(out, "method\t%d\t%s\t%s\t%s\t%d\t%d\t%s\t", id, class_name ? class_name : "", name ? name : "",
		signature ? signature : "", modifiers, (int)end + 1, source ? source : "");
	write_lines(method);
	release(name);
	release(signature);
	release(class_name);
	release(source);
	if (class)
		(*env)->DeleteLocalRef(env, class);
}

/* Returns the number of a method, and writes the method if it is new. */
static int number_of(jmethodID method)
{
	size_t slot = ((size_t)method >> 3) * 2654435761u % SLOTS;
	while (known[slot] && known[slot] != method)
		slot = (slot + 1) % SLOTS;
	if (!known[slot]) {
		known[slot] = method;
		ids[slot] = ++count;
		write_method(count, method);
	}
	return ids[slot];
}

static void write_pcs(const jvmtiCompiledMethodLoadInlineRecord *record)
{
	for (jint i = 0; i < record->numpcs; i++) {
		const PCStackInfo *info = &record->pcinfo[i];
		for (jint frame = 0; frame < info->numstackframes; frame++)
			number_of(info->methods[frame]);
		fprintf(out, "pc\t%lx", (unsigned long)info->pc);
		for (jint frame = 0; frame < info->numstackframes; frame++)
			fprintf(out, "\t%d:%d", number_of(info->methods[frame]), info->bcis[frame]);
		fputc('\n', out);
	}
}

static void JNICALL loaded(jvmtiEnv *env, jmethodID method, jint size, const void *address, jint map_length,
			   const jvmtiAddrLocationMap *map, const void *info)
{
	pthread_mutex_lock(&lock);
	if (changes) {
		fprintf(changes, "%lx\n", (unsigned long)address);
		fflush(changes);
	} else if (out) {
		int id = number_of(method);
		fprintf(out, "code\t%lx\t%d\t%d\n", (unsigned long)address, size, id);
		for (const jvmtiCompiledMethodLoadRecordHeader *record = info; record; record = record->next)
			if (record->kind == JVMTI_CMLR_INLINE_INFO)
				write_pcs((const jvmtiCompiledMethodLoadInlineRecord *)record);
	}
	pthread_mutex_unlock(&lock);
}

static void JNICALL unloaded(jvmtiEnv *env, jmethodID method, const void *address)
{
	pthread_mutex_lock(&lock);
	if (changes) {
		fprintf(changes, "%lx\n", (unsigned long)address);
		fflush(changes);
	}
	pthread_mutex_unlock(&lock);
}

static void JNICALL generated(jvmtiEnv *env, const char *name, const void *address, jint length)
{
	pthread_mutex_lock(&lock);
	if (out && !changes)
		fprintf(out, "stub\t%lx\t%d\t%s\n", (unsigned long)address, length, name);
	pthread_mutex_unlock(&lock);
}

static void enable(jvmtiEventMode mode, jvmtiEvent event)
{
	if ((*jvmti)->SetEventNotificationMode(jvmti, mode, event, NULL) != JVMTI_ERROR_NONE)
		abort();
}

JNIEXPORT void JNICALL Java_Inlines_write(JNIEnv *env, jclass class, jstring file)
{
	const char *path = (*env)->GetStringUTFChars(env, file, NULL);
	char later[4096];
	snprintf(later, sizeof(later), "%s.changes", path);
	/* Methods are compiled meanwhile: those are written, too. */
	out = fopen(path, "w");
	enable(JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	enable(JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_UNLOAD);
	(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	enable(JVMTI_ENABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	(*jvmti)->GenerateEvents(jvmti, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	enable(JVMTI_DISABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	pthread_mutex_lock(&lock);
	changes = fopen(later, "w");
	fclose(out);
	out = NULL;
	pthread_mutex_unlock(&lock);
	(*env)->ReleaseStringUTFChars(env, file, path);
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
	capabilities.can_get_line_numbers = 1;
	capabilities.can_get_source_file_name = 1;
	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.CompiledMethodLoad = loaded;
	callbacks.CompiledMethodUnload = unloaded;
	callbacks.DynamicCodeGenerated = generated;
	if ((*jvmti)->AddCapabilities(jvmti, &capabilities) != JVMTI_ERROR_NONE)
		return JNI_ERR;
	return (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) == JVMTI_ERROR_NONE ? JNI_OK : JNI_ERR;
}
