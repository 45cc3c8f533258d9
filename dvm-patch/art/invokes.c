/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reports ART's calls to dim, through ART's own instrumentation, which its method tracing also uses.
 *
 * ART reports entries, exits and unwinds to listeners: objects with virtual functions, such as art::Trace. The
 * listener here has a copy of art::Trace's function table, with three functions replaced. The symbols of these
 * functions identify their slots. Switching requires that a thread known to ART suspends all threads, so a thread is
 * attached while it switches. While calls are counted, ART uses its slow interpreter. At other times it has no
 * listener from here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "invokes.h"

/* The values that art::Trace::Start uses. */
enum { ENTERED_EXITED_UNWOUND = 7, CAUSE_INSTRUMENTATION = 8, COLLECTOR_INSTRUMENTATION = 7 };
enum { MAX_VIRTUALS = 64, POLL_NS = 500000000 };
enum { ATTACH_AS_DAEMON = 7, DETACH = 5, JNI_1_6 = 0x00010006 };

#define METHOD "PNS_6ThreadENS_6HandleINS_6mirror6ObjectEEEPNS_9ArtMethodEj"
#define ENTERED "_ZN3art5Trace13MethodEnteredE" METHOD
#define EXITED "_ZN3art5Trace12MethodExitedE" METHOD \
	"St8optionalISt17reference_wrapperIKNS_11ShadowFrameEEERNS_6JValueE"
#define UNWOUND "_ZN3art5Trace12MethodUnwindE" METHOD
/* For methods that return an object. It calls the other one. */
#define EXITED_WITH_OBJECT "_ZN3art15instrumentation23InstrumentationListener12MethodExitedEPNS_6ThreadE" \
	"NS_6HandleINS_6mirror6ObjectEEEPNS_9ArtMethodEjSt8optionalISt17reference_wrapperIKNS_11ShadowFrameEEE" \
	"RNS_13MutableHandleIS6_EE"

typedef void function(void);

struct attach_arguments {
	int version;
	const char *name;
	void *group;
};

static struct {
	const struct varid_build *build;
	struct varid_layout layout;
	void *vm;
	void **runtime; /* art::Runtime::instance_ */
	void (*add)(void *instrumentation, void *listener, unsigned events);
	void (*remove)(void *instrumentation, void *listener, unsigned events);
	void (*enable)(void *instrumentation, const char *key, int needs_interpreter);
	void (*disable)(void *instrumentation, const char *key);
	void (*suspend)(void *scope, const char *cause, int is_long);
	void (*resume)(void *scope);
	void (*enter_gc)(void *scope, void *thread, int cause, int collector);
	void (*leave_gc)(void *scope);
} art;

/* The object that ART calls as a listener. */
static struct {
	function **virtuals;
	function *table[MAX_VIRTUALS];
} listener;

static int ended;

/* The switching thread. Calls that attaching it causes are not the app's. */
static void *own_thread;

static void *this_thread(void)
{
	return *(void **)(dim_thread_pointer() + (unsigned long)art.layout.tls_offset);
}

static varid_u32 word_at(varid_u64 address)
{
	varid_u32 word;

	memcpy(&word, (const void *)(uintptr_t)address, sizeof(word));
	return word;
}

static varid_u64 pointer_at(varid_u64 address)
{
	void *pointer;

	memcpy(&pointer, (const void *)(uintptr_t)address, sizeof(pointer));
	return (uintptr_t)pointer;
}

/* Returns the address of a method's dex file, by the layout's offsets. Every step may be null. */
static varid_u64 dex_of(varid_u64 method)
{
	const struct varid_layout *layout = &art.layout;
	varid_u64 class = word_at(method + layout->method_class);
	varid_u64 cache = class ? word_at(class + layout->class_dex_cache) : 0;
	varid_u64 file = cache ? pointer_at(cache + layout->dex_cache_dex_file) : 0;

	return file ? pointer_at(file + layout->dex_file_begin) : 0;
}

/*
 * ART frees the methods of a dex file before it reports the unloading, so the pointer may already be another method's.
 */
static void tell(enum dim_event event, void *thread, void *method)
{
	if (dim_calls_on() && thread != __atomic_load_n(&own_thread, __ATOMIC_RELAXED))
		dim_call(event, (uintptr_t)method, dex_of((uintptr_t)method));
}

static void entered(void *self, void *thread, void *object, void *method, unsigned pc)
{
	(void)self, (void)object, (void)pc;
	tell(DIM_INVOKE, thread, method);
}

static void exited(void *self, void *thread, void *object, void *method, unsigned pc)
{
	(void)self, (void)object, (void)pc;
	tell(DIM_RETURN, thread, method);
}

static void unwound(void *self, void *thread, void *object, void *method, unsigned pc)
{
	(void)self, (void)object, (void)pc;
	tell(DIM_UNWIND, thread, method);
}

static void nothing(void)
{
}

static void *symbol(void *libart, const char *name, int *missing)
{
	void *found = dlsym(libart, name);

	*missing |= !found;
	return found;
}

/* Copies the table of art::Trace, with three functions replaced. */
static int make_table(void *libart)
{
	int missing = 0, replaced = 0;
	function **theirs = symbol(libart, "_ZTVN3art5TraceE", &missing);
	void *enters = symbol(libart, ENTERED, &missing);
	void *exits = symbol(libart, EXITED, &missing);
	void *unwinds = symbol(libart, UNWOUND, &missing);
	void *with_object = symbol(libart, EXITED_WITH_OBJECT, &missing);
	const ElfW(Sym) *size = NULL;
	Dl_info info;
	size_t count, i;

	if (missing || !dladdr1(theirs, &info, (void **)&size, RTLD_DL_SYMENT) || !size)
		return 0;
	count = size->st_size / sizeof(*theirs);
	if (count > MAX_VIRTUALS)
		return 0;
	for (i = 2; i < count; i++) {
		void *at = (void *)(uintptr_t)theirs[i];

		listener.table[i] = nothing;
		if (at == with_object)
			listener.table[i] = theirs[i];
		else if (at == enters && ++replaced)
			listener.table[i] = (function *)(uintptr_t)entered;
		else if (at == exits && ++replaced)
			listener.table[i] = (function *)(uintptr_t)exited;
		else if (at == unwinds && ++replaced)
			listener.table[i] = (function *)(uintptr_t)unwound;
	}
	/* The first function is preceded by two words: an offset and the type. */
	listener.virtuals = listener.table + 2;
	return replaced == 3;
}

static int find_functions(const char *path)
{
	void *libart = dlopen(path, RTLD_NOLOAD | RTLD_NOW);
	int missing = 0;

	if (!libart || !make_table(libart))
		return 0;
#define FIND(to, name) *(void **)&art.to = symbol(libart, name, &missing)
	FIND(runtime, "_ZN3art7Runtime9instance_E");
	FIND(add, "_ZN3art15instrumentation15Instrumentation11AddListenerEPNS0_23InstrumentationListenerEj");
	FIND(remove, "_ZN3art15instrumentation15Instrumentation14RemoveListenerEPNS0_23InstrumentationListenerEj");
	FIND(enable, "_ZN3art15instrumentation15Instrumentation19EnableMethodTracingEPKcb");
	FIND(disable, "_ZN3art15instrumentation15Instrumentation20DisableMethodTracingEPKc");
	FIND(suspend, "_ZN3art16ScopedSuspendAllC1EPKcb");
	FIND(resume, "_ZN3art16ScopedSuspendAllD1Ev");
	FIND(enter_gc, "_ZN3art2gc23ScopedGCCriticalSectionC1EPNS_6ThreadENS0_7GcCauseENS0_13CollectorTypeE");
	FIND(leave_gc, "_ZN3art2gc23ScopedGCCriticalSectionD1Ev");
#undef FIND
	return !missing;
}

/* Runs on a thread that ART knows and that is not executing managed code. */
static void switch_here(int on)
{
	void *instrumentation = (char *)*art.runtime + art.build->runtime_instrumentation;
	/* Larger than both of ART's objects. */
	uintptr_t gc[16], all[16];

	art.enter_gc(gc, this_thread(), CAUSE_INSTRUMENTATION, COLLECTOR_INSTRUMENTATION);
	art.suspend(all, "varid", 0);
	if (on) {
		art.add(instrumentation, &listener, ENTERED_EXITED_UNWOUND);
		art.enable(instrumentation, "varid", 1);
	} else {
		art.disable(instrumentation, "varid");
		art.remove(instrumentation, &listener, ENTERED_EXITED_UNWOUND);
	}
	art.resume(all);
	art.leave_gc(gc);
}

/* Called when dim switches counting on or off: on the polling thread, or on the first thread at the VM's start. */
static int switched(int on)
{
	struct attach_arguments arguments = { JNI_1_6, "varid", NULL };
	function **jni = *(function ***)art.vm;
	int (*attach)(void *, void **, void *) =
		(int (*)(void *, void **, void *))(uintptr_t)jni[ATTACH_AS_DAEMON];
	int (*detach)(void *) = (int (*)(void *))(uintptr_t)jni[DETACH];
	void *environment;

	if (__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
		return !on;
	if (this_thread()) {
		switch_here(on);
		return 1;
	}
	if (attach(art.vm, &environment, &arguments))
		return 0;
	__atomic_store_n(&own_thread, this_thread(), __ATOMIC_RELAXED);
	switch_here(on);
	detach(art.vm);
	__atomic_store_n(&own_thread, NULL, __ATOMIC_RELAXED);
	return 1;
}

/* Returns a zero-terminated string of a standard dex file, without its length. */
static const char *dex_string(varid_u64 dex, varid_u32 index)
{
	const char *text = (const char *)(uintptr_t)(dex + word_at(dex + word_at(dex + 0x3c) + 4ull * index));

	while (*text++ & 0x80)
		;
	return text;
}

static void name_method(varid_u64 dex, struct dim_method *out)
{
	varid_u64 method = dex + word_at(dex + 0x5c) + 8ull * out->index;
	varid_u32 class = word_at(method) & 0xffff;

	if (out->index >= word_at(dex + 0x58))
		return;
	out->descriptor = dex_string(dex, word_at(dex + word_at(dex + 0x44) + 4ull * class));
	out->name = dex_string(dex, word_at(method + 4));
}

static void describe(varid_u64 method, struct dim_method *out)
{
	const struct varid_layout *layout = &art.layout;
	varid_u32 code = word_at(method + layout->method_code);

	out->dex = dex_of(method);
	if (!out->dex)
		return;
	out->index = word_at(method + layout->method_index);
	if (memcmp((const void *)(uintptr_t)out->dex, "dex\n", 4))
		return;
	if (code)
		out->insns = out->dex + code + 16; /* after the code item's header */
	name_method(out->dex, out);
}

/* Polls varid's control page twice a second. */
static void *poll(void *unused)
{
	struct timespec pause = { 0, POLL_NS };

	for (;;) {
		dim_calls_poll();
		nanosleep(&pause, NULL);
	}
	return unused;
}

static void start_polling(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;

	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* The thread must not take the app's signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, &attributes, poll, NULL))
		pthread_setname_np(thread, "varid");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

static int has_zygotes_arguments(void)
{
	static char arguments[4096];
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t size = file ? fread(arguments, 1, sizeof(arguments) - 1, file) : 0;
	const char *at;

	if (file)
		fclose(file);
	for (at = arguments; at < arguments + size; at += strlen(at) + 1)
		if (!strcmp(at, "--zygote") || !strcmp(at, "-Xzygote"))
			return 1;
	return 0;
}

/*
 * A zygote must have only one thread when it forks, and so must its child until it has dropped its privileges. That
 * has happened when the app's first dex file is loaded.
 */
static int is_zygote, waits_for_dex;

/* The child has only the forking thread, which does not poll. */
static void forked(void)
{
	__atomic_store_n(&own_thread, NULL, __ATOMIC_RELAXED);
	if (is_zygote)
		waits_for_dex = 1;
	else
		start_polling();
}

void varid_invokes_dex_came(void)
{
	if (!waits_for_dex)
		return;
	is_zygote = waits_for_dex = 0;
	start_polling();
}

void varid_invokes_init(const struct varid_build *build, const struct varid_layout *layout, void *vm,
			const char *path)
{
	art.build = build;
	art.layout = *layout;
	art.vm = vm;
	if (!build->runtime_instrumentation || !find_functions(path)) {
		static const char line[] = "varid: this libart exports too little: its calls cannot be counted\n";
		const char *tactic = getenv("VARID_TACTIC");

		/* Prints the line only if counting was requested. */
		if (tactic && *tactic && write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
			return;
		return;
	}
	is_zygote = has_zygotes_arguments();
	if (is_zygote) {
		dim_calls_init(describe, switched, NULL, NULL, NULL);
	} else {
		dim_calls_init(describe, switched, getenv("VARID_TACTIC"), getenv("VARID_CALL_LOG"),
			       getenv("VARID_CALL_FILTERS"));
		start_polling();
	}
	pthread_atfork(NULL, NULL, forked);
}

void varid_invokes_end(void)
{
	__atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
}

void varid_invokes_dex_gone(varid_u64 start)
{
	dim_calls_dex_gone(start);
}
