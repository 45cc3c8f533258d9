/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions that Dalvik calls at events. hooks.cocci inserts the calls.
 *
 * A call waits only for another thread that is publishing, and never fails the VM. On machines that dim does not
 * support, the hooks are empty.
 */
#ifndef VARID_DALVIK_H
#define VARID_DALVIK_H

struct ClassObject;
struct Method;
struct Thread;

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__arm__) || defined(__i386__) || defined(__x86_64__)
#define VARID_DALVIK_HIDDEN __attribute__((visibility("hidden")))

/* A Zygote's child, or a VM without a Zygote, starts running: publishes its own tunnel. */
VARID_DALVIK_HIDDEN void varid_dalvik_running(void);
VARID_DALVIK_HIDDEN void varid_dalvik_shutdown(void);

/* Called on the new thread. The VM's first thread publishes the tunnel. */
VARID_DALVIK_HIDDEN void varid_dalvik_thread_start(const struct Thread *thread);

/* Called while the VM sets the events that a new thread reports. The thread list is locked. From 4.0 on. */
VARID_DALVIK_HIDDEN void varid_dalvik_thread_modes(struct Thread *thread);

/* Called on any thread. thread may be null, or one that never started. */
VARID_DALVIK_HIDDEN void varid_dalvik_thread_exit(const struct Thread *thread);

/* A class was loaded: publishes the dex file that contains it. */
VARID_DALVIK_HIDDEN void varid_dalvik_class(const struct ClassObject *class_object);

/* The bytecode at pc has been compiled. Its code starts here and ends where the next one's starts. */
VARID_DALVIK_HIDDEN void varid_dalvik_jit(const unsigned short *pc, const void *code);

/* All compiled code was discarded. */
VARID_DALVIK_HIDDEN void varid_dalvik_jit_reset(void);

/* A class's memory is freed. Its dex file stays. */
VARID_DALVIK_HIDDEN void varid_dalvik_class_gone(const struct ClassObject *class_object);

/*
 * action: 0 call, 1 return, 2 unwound by an exception. Returns 1 if the VM's own trace, which may be off, must not
 * record the event.
 */
VARID_DALVIK_HIDDEN int varid_dalvik_invoke(const struct Thread *thread, const struct Method *method, int action);
#else
static inline void varid_dalvik_running(void) {}
static inline void varid_dalvik_shutdown(void) {}
static inline void varid_dalvik_thread_start(const struct Thread *thread) { (void)thread; }
static inline void varid_dalvik_thread_modes(struct Thread *thread) { (void)thread; }
static inline void varid_dalvik_thread_exit(const struct Thread *thread) { (void)thread; }
static inline void varid_dalvik_class(const struct ClassObject *class_object) { (void)class_object; }
static inline void varid_dalvik_jit(const unsigned short *pc, const void *code) { (void)pc; (void)code; }
static inline void varid_dalvik_jit_reset(void) {}
static inline void varid_dalvik_class_gone(const struct ClassObject *class_object) { (void)class_object; }
static inline int varid_dalvik_invoke(const struct Thread *thread, const struct Method *method, int action)
{
	(void)thread;
	(void)method;
	(void)action;
	return 0;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
