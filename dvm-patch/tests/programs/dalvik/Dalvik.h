/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A toy VM with the functions that Dalvik's hooks are inserted into, in C (as Android 1.6 to
 * 2.3) and in C++ (as 4.x).
 */
#ifndef TOY_DALVIK_H
#define TOY_DALVIK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint16_t u2;
typedef uint32_t u4;

typedef struct DexHeader {
	u4 magic;
	u4 fileSize;
} DexHeader;

typedef struct DexFile {
	int filler;
	const unsigned char *baseAddr;
} DexFile;

typedef struct DvmDex {
	DexFile *pDexFile;
	const DexHeader *pHeader;
} DvmDex;

typedef struct DexProto {
	const DexFile *dexFile;
	u4 protoIdx;
} DexProto;

typedef struct ClassObject {
	const char *descriptor;
	DvmDex *pDvmDex;
	void *classLoader;
	const char *sourceFile;
	int directMethodCount;
	struct Method *directMethods;
	int virtualMethodCount;
	struct Method *virtualMethods;
} ClassObject;

typedef struct Method {
	ClassObject *clazz;
	const u2 *insns;
	const char *name;
	DexProto prototype;
} Method;

typedef struct StackSaveArea {
	void *prevFrame;
	const u2 *savedPc;
	const Method *method;
	union {
		u4 cookie;
		const u2 *currentPc;
	} xtra;
	const u2 *returnAddr;
} StackSaveArea;

typedef struct Thread {
#ifdef __cplusplus
	struct {
		const u2 *pc;
		void *curFrame;
	} interpSave;
	int systemTid;
#else
	int status;
	int systemTid;
	void *curFrame;
#endif
	int modes;
	struct Thread *next;
} Thread;

typedef struct MethodTraceState {
	int traceEnabled;
} MethodTraceState;

extern struct DvmGlobals {
	volatile int activeProfilers;
	MethodTraceState methodTrace;
	Thread *threadList;
	pthread_mutex_t threadListLock;
} gDvm;

#ifdef __cplusplus
enum ExecutionSubModes { kSubModeMethodTrace = 1 };
void dvmInitializeInterpBreak(Thread *thread);
void dvmEnableSubMode(Thread *thread, ExecutionSubModes mode);
void dvmEnableAllSubMode(ExecutionSubModes mode);
void dvmDisableAllSubMode(ExecutionSubModes mode);
void dvmCompilerUpdateGlobalState(void);
#endif
/* Starts or stops the VM's own trace. */
void toyTrace(int on);
/* Returns whether calls are reported to dvmMethodTraceAdd. */
int toyTraces(void);

#ifdef WITH_JIT
extern struct DvmJitGlobals {
	void *codeCache;
	unsigned int codeCacheSize;
} gDvmJit;
#endif

bool dvmInitAfterZygote(void);
void dvmShutdown(void);
Thread *dvmThreadSelf(void);
Thread *toyAttach(void);
void toyDetach(Thread *thread);
ClassObject *toyLoad(DvmDex *dex, void *loader);
void toyUnload(ClassObject *made);
void dvmFreeClassInnards(ClassObject *made);
void dvmMethodTraceAdd(Thread *self, const Method *method, int action);
int toyTraced(void);
void toyCompile(const u2 *pc);
int toyCompiled(void);
void dvmJitSetCodeAddr(const u2 *pc, void *code, int set);
void dvmJitResetTable(void);

#endif
