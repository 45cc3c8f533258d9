/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a step of the patched toy VM for each line of standard input:
 *
 *   boot FILE   app FILE    loads a class of the dex file, by the boot class path's loader or an app's
 *   run                     a VM without a Zygote starts to run
 *   thread      join        starts a thread and waits until it is one of the VM's and has called; ends it
 *   work                    calls, compiles, unloads
 *   calls                   calls and returns, if calls are told
 *   trace       untrace     the VM's own trace begins, ends
 *   modes                   whether the first thread's calls are told
 *   fork                    goes on in a child, as a Zygote's
 *   shutdown
 *
 * Each line is answered by "ok PID VALUE", where VALUE is the address or thread concerned.
 */
#include "Dalvik.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The interpreter's labels, without an interpreter. */
__asm__(".pushsection .text\n"
	".globl dvmAsmInstructionStart, dvmAsmInstructionEnd\n"
	"dvmAsmInstructionStart: .skip 256 * 64\n"
	"dvmAsmInstructionEnd:\n"
	".popsection\n");

static ClassObject *last;

/*
 * Returns a method's address, and whether its calls were reported. The VM's own trace must not get them.
 */
static unsigned long calls(void)
{
	static Method method;
	const int before = toyTraced();

	method.clazz = last;
	method.insns = (const u2 *)last->pDvmDex->pHeader + 8;
	method.name = "called";
	if (toyTraces()) {
		dvmMethodTraceAdd(dvmThreadSelf(), &method, 0);
		dvmMethodTraceAdd(dvmThreadSelf(), &method, 0);
		dvmMethodTraceAdd(dvmThreadSelf(), &method, 1);
		dvmMethodTraceAdd(dvmThreadSelf(), &method, 2);
	}
	return toyTraced() == before ? (unsigned long)&method + (unsigned long)toyTraces() : 0;
}

static sem_t attached, leave;
static Thread *other;

static void *thread(void *unused)
{
	(void)unused;
	other = toyAttach();
	if (toyTraces())
		calls();
	sem_post(&attached);
	sem_wait(&leave);
	toyDetach(other);
	return NULL;
}

/* Returns the address at which the dex file is mapped, once. */
static unsigned long load(const char *file, int boot)
{
	static DexFile files[2];
	static DvmDex dexes[2];
	struct stat status;
	int fd;

	if (!dexes[boot].pHeader) {
		fd = open(file, O_RDONLY);
		if (fd < 0 || fstat(fd, &status))
			return 0;
		files[boot].baseAddr =
			(const unsigned char *)mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		close(fd);
		if (files[boot].baseAddr == MAP_FAILED)
			return 0;
		dexes[boot].pDexFile = &files[boot];
		dexes[boot].pHeader = (const DexHeader *)files[boot].baseAddr;
	}
	last = toyLoad(&dexes[boot], boot ? NULL : &files[boot]);
	return (unsigned long)dexes[boot].pHeader;
}

/* Returns the numbers of traced calls (two) and compiled traces (one). */
static unsigned long work(void)
{
	static const u2 insns[4] = { 0, 0, 0, 0 };
	Method method;
	int i;

	method.clazz = last;
	method.insns = insns;
	for (i = 0; i < 3; i++)
		toyCompile(insns + i);
	gDvm.methodTrace.traceEnabled = 1;
	dvmMethodTraceAdd(dvmThreadSelf(), &method, 0);
	dvmMethodTraceAdd(dvmThreadSelf(), &method, 0);
	gDvm.methodTrace.traceEnabled = 0;
	toyUnload(last);
	return (unsigned long)(toyTraced() * 16 + toyCompiled());
}

int main(void)
{
	static char line[512], word[16], text[480];
	pthread_t handle;
	unsigned long value;
	pid_t child;

	sem_init(&attached, 0, 0);
	sem_init(&leave, 0, 0);
	value = (unsigned long)toyAttach();
	printf("ok %d %lx\n", (int)getpid(), value);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		word[0] = text[0] = 0;
		sscanf(line, "%15s %479s", word, text);
		value = 0;
		if (!strcmp(word, "boot") || !strcmp(word, "app")) {
			value = load(text, word[0] == 'b');
		} else if (!strcmp(word, "run")) {
			value = dvmInitAfterZygote();
		} else if (!strcmp(word, "thread")) {
			if (pthread_create(&handle, NULL, thread, NULL))
				return 1;
			sem_wait(&attached);
			value = (unsigned long)other;
		} else if (!strcmp(word, "join")) {
			sem_post(&leave);
			pthread_join(handle, NULL);
		} else if (!strcmp(word, "work")) {
			value = work();
		} else if (!strcmp(word, "calls")) {
			value = calls();
		} else if (!strcmp(word, "trace") || !strcmp(word, "untrace")) {
			toyTrace(word[0] == 't');
		} else if (!strcmp(word, "modes")) {
			value = (unsigned long)toyTraces();
		} else if (!strcmp(word, "fork")) {
			child = fork();
			if (child > 0) {
				waitpid(child, NULL, 0);
				return 0;
			}
			if (child < 0)
				return 1;
			dvmThreadSelf()->systemTid = (int)getpid();
			value = dvmInitAfterZygote();
		} else if (!strcmp(word, "shutdown")) {
			dvmShutdown();
		} else {
			return 2;
		}
		printf("ok %d %lx\n", (int)getpid(), value);
		fflush(stdout);
	}
	return 0;
}
