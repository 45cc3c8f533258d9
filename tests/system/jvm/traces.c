/*
 * An agent that takes the stack of each Java thread by AsyncGetCallTrace, in a signal's handler. It uses nothing of varid.
 *
 * Before the VM is asked, the handler calls traces_sampled(): a probe there has a sample of the same stack, below the handler.
 *
 * usage: -agentpath:AGENT=FILE,NANOSECONDS     the file, and the processor time between two samples of a thread
 * It writes lines, the traces when the VM ends:
 *   code START SIZE ADDRESS...                         a compiled method, and the addresses in it with debug information
 *   trace TID BEFORE AFTER PC COUNT METHOD:BCI...      times of CLOCK_MONOTONIC before and after traces_sampled(), in nanoseconds; the interrupted
 *                                                      instruction; the number of frames, or why there are none; frames, innermost first
 * A METHOD is the class's name as JVMTI has it, a dot, and its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jvmti.h>
#include <jvmticmlr.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST_SAMPLES (1 << 16)
#define MOST_FRAMES 250

/* What AsyncGetCallTrace fills (src/hotspot/share/prims/forte.cpp). */
struct call_frame {
	jint bci;
	jmethodID method;
};

struct call_trace {
	JNIEnv *env;
	jint count;
	struct call_frame *frames;
};

struct sample {
	int thread, count;
	unsigned long long before, after;
	unsigned long pc;
	struct call_frame frames[MOST_FRAMES];
};

static jvmtiEnv *jvmti;
static void (*get_call_trace)(struct call_trace *trace, jint depth, void *context);
static struct sample *samples;
static int taken, is_over;
static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long period;
/* Accessed by a handler: without the allocation that a library's thread-local variables else need. */
static __thread JNIEnv *own_env __attribute__((tls_model("initial-exec")));

static unsigned long long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void require(int is_so, const char *what)
{
	if (!is_so) {
		fprintf(stderr, "traces: %s\n", what);
		abort();
	}
}

__attribute__((noinline)) void traces_sampled(void)
{
	__asm__ volatile("" ::: "memory");
}

static void handle(int signal, siginfo_t *info, void *context)
{
	int error = errno;
	int index = __atomic_load_n(&is_over, __ATOMIC_ACQUIRE) ? MOST_SAMPLES : __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
	(void)signal, (void)info;
	if (index < MOST_SAMPLES) {
		struct sample *sample = &samples[index];
		struct call_trace trace = { own_env, 0, sample->frames };
		sample->pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
		sample->before = now();
		traces_sampled();
		sample->after = now();
		get_call_trace(&trace, MOST_FRAMES, context);
		sample->count = trace.count;
		__atomic_store_n(&sample->thread, gettid(), __ATOMIC_RELEASE);
	}
	errno = error;
}

/* Sends this thread a signal each time that it has used so much processor time. */
static void sample_thread(JNIEnv *env)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK };
	struct f_owner_ex owner = { F_OWNER_TID, gettid() };
	int event;
	own_env = env;
	attr.sample_period = period;
	attr.wakeup_events = 1;
	event = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	require(event >= 0, "no clock for a thread");
	require(fcntl(event, F_SETOWN_EX, &owner) == 0 && fcntl(event, F_SETSIG, SIGPROF) == 0, "no signal");
	require(fcntl(event, F_SETFL, O_ASYNC) == 0, "no signal of a clock");
}

/* The VM finds only methods that have an identifier already. */
static void identify_methods(jclass class)
{
	jint count;
	jmethodID *methods;
	if ((*jvmti)->GetClassMethods(jvmti, class, &count, &methods) == JVMTI_ERROR_NONE)
		(*jvmti)->Deallocate(jvmti, (void *)methods);
}

static void JNICALL prepared(jvmtiEnv *env, JNIEnv *jni, jthread thread, jclass class)
{
	identify_methods(class);
}

/* The VM asks for somebody who wants to know that. */
static void JNICALL class_loaded(jvmtiEnv *env, JNIEnv *jni, jthread thread, jclass class)
{
}

static void JNICALL code_loaded(jvmtiEnv *env, jmethodID method, jint size, const void *address, jint map_length,
				const jvmtiAddrLocationMap *map, const void *info)
{
	pthread_mutex_lock(&lock);
	fprintf(out, "code\t%lx\t%d", (unsigned long)address, size);
	for (const jvmtiCompiledMethodLoadRecordHeader *record = info; record; record = record->next) {
		const jvmtiCompiledMethodLoadInlineRecord *inlined = (const void *)record;
		for (jint pc = 0; record->kind == JVMTI_CMLR_INLINE_INFO && pc < inlined->numpcs; pc++)
			fprintf(out, "\t%lx", (unsigned long)inlined->pcinfo[pc].pc);
	}
	fputc('\n', out);
	pthread_mutex_unlock(&lock);
}

static void JNICALL thread_started(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	sample_thread(jni);
}

static void JNICALL started(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	jint count;
	jclass *classes;
	struct sigaction action;
	require((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) == JVMTI_ERROR_NONE, "no classes");
	for (jint i = 0; i < count; i++) {
		identify_methods(classes[i]);
		(*jni)->DeleteLocalRef(jni, classes[i]);
	}
	(*jvmti)->Deallocate(jvmti, (void *)classes);
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handle;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	sigaction(SIGPROF, &action, NULL);
	require((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_THREAD_START, NULL) == JVMTI_ERROR_NONE,
		"no threads");
	sample_thread(jni);
}

static void write_frame(JNIEnv *jni, const struct call_frame *frame)
{
	char *name = NULL, *class_name = NULL;
	jclass class = NULL;
	int is_known = (*jvmti)->GetMethodName(jvmti, frame->method, &name, NULL, NULL) == JVMTI_ERROR_NONE &&
		       (*jvmti)->GetMethodDeclaringClass(jvmti, frame->method, &class) == JVMTI_ERROR_NONE &&
		       (*jvmti)->GetClassSignature(jvmti, class, &class_name, NULL) == JVMTI_ERROR_NONE;
	fprintf(out, "\t%s.%s:%d", is_known ? class_name : "", is_known ? name : "", frame->bci);
	if (name)
		(*jvmti)->Deallocate(jvmti, (void *)name);
	if (class_name)
		(*jvmti)->Deallocate(jvmti, (void *)class_name);
	if (class)
		(*jni)->DeleteLocalRef(jni, class);
}

static void JNICALL ended(jvmtiEnv *env, JNIEnv *jni)
{
	int count;
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&lock);
	count = __atomic_load_n(&taken, __ATOMIC_ACQUIRE);
	for (int i = 0; i < count && i < MOST_SAMPLES; i++) {
		struct sample *sample = &samples[i];
		/* One that another thread is taking is left out. */
		int thread = __atomic_load_n(&sample->thread, __ATOMIC_ACQUIRE);
		if (!thread)
			continue;
		fprintf(out, "trace\t%d\t%llu\t%llu\t%lx\t%d", thread, sample->before, sample->after, sample->pc, sample->count);
		for (int frame = 0; frame < sample->count; frame++)
			write_frame(jni, &sample->frames[frame]);
		fputc('\n', out);
	}
	require(fflush(out) == 0, "the file cannot be written");
	pthread_mutex_unlock(&lock);
}

static void enable(jvmtiEvent event)
{
	require((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, event, NULL) == JVMTI_ERROR_NONE, "no event");
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	jvmtiEventCallbacks callbacks = {
		.VMInit = started,
		.VMDeath = ended,
		.ThreadStart = thread_started,
		.ClassLoad = class_loaded,
		.ClassPrepare = prepared,
		.CompiledMethodLoad = code_loaded,
	};
	jvmtiCapabilities capabilities;
	char path[4096];
	require((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) == JNI_OK, "no JVMTI");
	require(options && sscanf(options, "%4095[^,],%llu", path, &period) == 2, "usage: FILE,NANOSECONDS");
	out = fopen(path, "w");
	require(out != NULL, "no file");
	get_call_trace = (void (*)(struct call_trace *, jint, void *))dlsym(dlopen("libjvm.so", RTLD_LAZY | RTLD_NOLOAD), "AsyncGetCallTrace");
	require(get_call_trace != NULL, "the VM has no AsyncGetCallTrace");
	samples = mmap(NULL, MOST_SAMPLES * sizeof(*samples), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	require(samples != MAP_FAILED, "no memory");
	memset(&capabilities, 0, sizeof(capabilities));
	capabilities.can_generate_compiled_method_load_events = 1;
	require((*jvmti)->AddCapabilities(jvmti, &capabilities) == JVMTI_ERROR_NONE, "no capability");
	require((*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) == JVMTI_ERROR_NONE, "no callbacks");
	enable(JVMTI_EVENT_VM_INIT);
	enable(JVMTI_EVENT_VM_DEATH);
	enable(JVMTI_EVENT_CLASS_LOAD);
	enable(JVMTI_EVENT_CLASS_PREPARE);
	enable(JVMTI_EVENT_COMPILED_METHOD_LOAD);
	return JNI_OK;
}
