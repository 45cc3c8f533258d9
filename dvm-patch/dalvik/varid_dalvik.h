/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What does Dalvik call when something happens? hooks.cocci inserts the calls.
 *
 * No call waits for anybody but another thread that is publishing, none fails the VM. For
 * a machine that dim does not know there is nothing to call: the hooks compile to nothing.
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

/* A Zygote's child, or a VM without a Zygote, is about to run: it gets a tunnel of its own. */
VARID_DALVIK_HIDDEN void varid_dalvik_running(void);
VARID_DALVIK_HIDDEN void varid_dalvik_shutdown(void);

/* On the thread itself; the VM's first thread publishes the tunnel. */
VARID_DALVIK_HIDDEN void varid_dalvik_thread_start(const struct Thread *thread);

/* The VM settles which events a thread tells that is about to start, and has the thread list locked. From 4.0 on. */
VARID_DALVIK_HIDDEN void varid_dalvik_thread_modes(struct Thread *thread);

/* On any thread; thread may be null, or one that never started. */
VARID_DALVIK_HIDDEN void varid_dalvik_thread_exit(const struct Thread *thread);

/* A class is loaded, so the dex file it is in is mapped. */
VARID_DALVIK_HIDDEN void varid_dalvik_class(const struct ClassObject *class_object);

/* The bytecode at pc has been compiled; its code starts here and ends where the next one's starts. */
VARID_DALVIK_HIDDEN void varid_dalvik_jit(const unsigned short *pc, const void *code);

/* All compiled code is gone. */
VARID_DALVIK_HIDDEN void varid_dalvik_jit_reset(void);

/* A class's memory is freed; its dex file stays. */
VARID_DALVIK_HIDDEN void varid_dalvik_class_gone(const struct ClassObject *class_object);

/*
 * action: 0 call, 1 return, 2 unwound by an exception. Returns 1 if the VM's own trace, which may
 * be off, is not to have it.
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
