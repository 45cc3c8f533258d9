/*
 * Writes each calling context of a program's own methods, and how often it was entered, by JVMTI's events of entries and exits. Options: the main class,
 * the file, and optionally "steps". A line is the number of entries, the thread's name, and the frames from the first one on, each behind a tab
 * with the index of the call in its caller ('-' if the caller's instruction is no call) before ':'. Native methods are no frames.
 *
 * With "steps" the line of a context is followed by one for each instruction that it has executed, by the interpreter's single steps: '=', the
 * index of the instruction and the number of its executions, separated by blanks. HotSpot must run with -Xint and -XX:-RewriteFrequentPairs,
 * because there are no steps of compiled code, and one step of two instructions that are made one. The last line says how many steps were of a
 * method other than the context's.
 *
 * Own methods are those of the main class and of classes whose names begin with its name. Contexts of more frames than DEPTH are left out: where a stack overflows depends on the size of frames.
 */
#include <jvmti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With native frames. */
#define DEPTH 400

struct context {
    struct context *parent, *child, *next, *all;
    jmethodID method;
    int site, native, own;
    const char *thread;
    unsigned long entries;
    int depth;
    /* How often each instruction was executed. NULL before the first one. */
    unsigned long *steps;
    jint length;
};

struct thread {
    struct context root, *now;
};

static jvmtiEnv *jvmti;
static char main_class[256];
static char path[1024];
static volatile int counting;
static __thread struct thread *current;
static struct context *contexts;
static int counts_steps;
static unsigned long elsewhere;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The index of a call, or -1. */
static int site_of(jmethodID method, jlocation location)
{
    jint length;
    unsigned char *code;
    int site = -1;
    if (location < 0 || (*jvmti)->GetBytecodes(jvmti, method, &length, &code) != 0)
        return -1;
    if (location < length && code[location] >= 182 && code[location] <= 186)
        site = (int)location;
    (*jvmti)->Deallocate(jvmti, code);
    return site;
}

static struct thread *this_thread(jthread thread)
{
    if (!current) {
        jvmtiThreadInfo info = {0};
        current = calloc(1, sizeof *current);
        (*jvmti)->GetThreadInfo(jvmti, thread, &info);
        current->root.thread = strdup(info.name ? info.name : "?");
        current->now = &current->root;
    }
    return current;
}

static int is_own(jmethodID method)
{
    jclass class;
    char *signature;
    int is = 0;
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, method, &class) == 0 && (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) == 0) {
        /* Without the semicolon. */
        is = !strncmp(signature, main_class, strlen(main_class) - 1);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    return is;
}

static int is_start(jmethodID method)
{
    jclass class;
    char *signature, *name;
    int is = 0;
    (*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL);
    if (!strcmp(name, "<clinit>") || !strcmp(name, "main")) {
        (*jvmti)->GetMethodDeclaringClass(jvmti, method, &class);
        (*jvmti)->GetClassSignature(jvmti, class, &signature, NULL);
        is = !strcmp(signature, main_class);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    return is;
}

static void JNICALL entry(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method)
{
    struct thread *here;
    struct context *found;
    jboolean native = 0;
    int site = -1;
    jmethodID caller;
    jlocation location;
    if (!counting) {
        if (!is_start(method))
            return;
        counting = 1;
    }
    here = this_thread(thread);
    (*jvmti)->IsMethodNative(jvmti, method, &native);
    if (here->now != &here->root) {
        if (here->now->native)
            site = here->now->site;
        else if ((*jvmti)->GetFrameLocation(jvmti, thread, 1, &caller, &location) == 0)
            site = site_of(caller, location);
    }
    for (found = here->now->child; found; found = found->next)
        if (found->method == method && found->site == site)
            break;
    if (!found) {
        found = calloc(1, sizeof *found);
        found->parent = here->now;
        found->method = method;
        found->site = site;
        found->native = native;
        found->own = is_own(method);
        found->thread = here->root.thread;
        found->depth = here->now->depth + 1;
        found->next = here->now->child;
        here->now->child = found;
        pthread_mutex_lock(&lock);
        found->all = contexts;
        contexts = found;
        pthread_mutex_unlock(&lock);
    }
    found->entries++;
    here->now = found;
}

static void JNICALL leave(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method, jboolean thrown, jvalue value)
{
    /* A frame that was entered before counting began has no context. */
    if (counting && current && current->now != &current->root && current->now->method == method)
        current->now = current->now->parent;
}

static void JNICALL step(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method, jlocation location)
{
    struct context *now;
    unsigned char *code;
    /* A frame that was entered before counting began has no context. */
    if (!counting || !current || current->now == &current->root)
        return;
    now = current->now;
    if (now->method != method) {
        __atomic_fetch_add(&elsewhere, 1, __ATOMIC_RELAXED);
        return;
    }
    if (!now->own)
        return;
    if (!now->steps) {
        if ((*jvmti)->GetBytecodes(jvmti, method, &now->length, &code) != 0)
            return;
        (*jvmti)->Deallocate(jvmti, code);
        now->steps = calloc(now->length, sizeof *now->steps);
    }
    if (location < now->length)
        now->steps[location]++;
}

static void print_frames(FILE *file, struct context *of)
{
    char *name, *descriptor, *class_name;
    jclass class;
    if (!of->parent)
        return;
    print_frames(file, of->parent);
    if (of->native)
        return;
    (*jvmti)->GetMethodName(jvmti, of->method, &name, &descriptor, NULL);
    (*jvmti)->GetMethodDeclaringClass(jvmti, of->method, &class);
    (*jvmti)->GetClassSignature(jvmti, class, &class_name, NULL);
    class_name[strlen(class_name) - 1] = 0;
    if (of->site < 0)
        fprintf(file, "\t-:%s.%s%s", class_name + 1, name, descriptor);
    else
        fprintf(file, "\t%d:%s.%s%s", of->site, class_name + 1, name, descriptor);
}

static void JNICALL death(jvmtiEnv *env, JNIEnv *jni)
{
    FILE *file = fopen(path, "w");
    struct context *each;
    counting = 0;
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_METHOD_EXIT, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_DISABLE, JVMTI_EVENT_SINGLE_STEP, NULL);
    for (each = contexts; each; each = each->all)
        if (each->own && !each->native && each->depth <= DEPTH) {
            jint index;
            fprintf(file, "%lu %s", each->entries, each->thread);
            print_frames(file, each);
            fputc('\n', file);
            for (index = 0; each->steps && index < each->length; index++)
                if (each->steps[index])
                    fprintf(file, "= %d %lu\n", (int)index, each->steps[index]);
        }
    if (counts_steps)
        fprintf(file, "elsewhere %lu\n", elsewhere);
    fclose(file);
}

static void JNICALL init(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_EXIT, NULL);
    if (counts_steps)
        (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_SINGLE_STEP, NULL);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    jvmtiCapabilities capabilities = {0};
    jvmtiEventCallbacks callbacks = {0};
    char name[200], steps[16] = "";
    if (sscanf(options, "%199[^,],%1023[^,],%15s", name, path, steps) < 2)
        return 1;
    counts_steps = !strcmp(steps, "steps");
    snprintf(main_class, sizeof main_class, "L%s;", name);
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != 0)
        return 1;
    capabilities.can_generate_method_entry_events = 1;
    capabilities.can_generate_method_exit_events = 1;
    capabilities.can_get_bytecodes = 1;
    capabilities.can_generate_single_step_events = counts_steps;
    (*jvmti)->AddCapabilities(jvmti, &capabilities);
    callbacks.MethodEntry = entry;
    callbacks.MethodExit = leave;
    callbacks.SingleStep = step;
    callbacks.VMDeath = death;
    callbacks.VMInit = init;
    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    return 0;
}
