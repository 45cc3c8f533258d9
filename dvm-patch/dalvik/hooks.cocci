// The places where Dalvik calls dim. Android 1.6 to 4.4, C and (spatch --c++) C++.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Each rule names one function and inserts one call of varid_dalvik.h. apply.sh checks how often each one matches in which file.

@include@
@@
 #include "Dalvik.h"
+#include "varid/varid_dalvik.h"

// A Zygote's child, or a VM without a Zygote, starts running.
@running@
@@
 dvmInitAfterZygote(...)
 {
+	varid_dalvik_running();
	...
 }

@shutdown@
@@
 dvmShutdown(...)
 {
+	varid_dalvik_shutdown();
	...
 }

// On the new thread, when it can no longer fail.
@thread_start@
type T;
identifier thread;
@@
 prepareThread(T thread)
 {
	<...
+	varid_dalvik_thread_start(thread);
	return true;
	...>
 }

// Sets the events that a new thread reports.
@thread_modes@
type T;
identifier thread;
@@
 dvmInitializeInterpBreak(T thread)
 {
+	varid_dalvik_thread_modes(thread);
	...
 }

@thread_exit@
type T;
identifier thread;
@@
 freeThread(T thread)
 {
+	varid_dalvik_thread_exit(thread);
	...
 }

// The class and its methods are complete, except for linking.
@class_loaded@
identifier class_object;
expression name;
@@
 loadClassFromDex0(...)
 {
	<...
	class_object->sourceFile = name;
+	varid_dalvik_class(class_object);
	...>
 }

// Also for a class that another thread has loaded first.
@class_gone@
type T;
identifier class_object;
@@
 dvmFreeClassInnards(T class_object)
 {
+	varid_dalvik_class_gone(class_object);
	...
 }

// Calls, returns and unwinding. If the hook returns 1, the event is not written to the VM's own buffer, which exists only while the
// VM itself traces.
@invoke@
type T, M, A;
identifier self, method, action;
parameter list rest;
@@
 dvmMethodTraceAdd(T self, M method, A action, rest)
 {
+	if (varid_dalvik_invoke(self, method, action)) return;
	...
 }

// A trace, or in 4.x a method, has been compiled.
@jit@
expression pc, code;
expression list rest;
@@
 dvmJitSetCodeAddr(pc, code, rest);
+varid_dalvik_jit(pc, code);

@jit_reset@
@@
 resetCodeCache(...)
 {
	<...
	dvmJitResetTable();
+	varid_dalvik_jit_reset();
	...>
 }
