/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What may a process map, so that whoever looks at it is held up? hostile_mappings KIND FOLDER:
 *   tunnel    a tunnel in a file of a file system that it serves itself, and reads of which it never answers
 *   code      a library there
 *   overlay   a library of an overlay over such a file system, which tells all of its files but what is in them
 *   arguments its own command line, which is its memory, is such a file's
 *   many      so many mappings of code as the kernel allows
 *   files     20,000 files of code
 *   name      a library whose name is no text, and a function in it
 *   names     code of its own, and a perf map that says more of it than anybody can read, in a /tmp of its own
 * It prints a line when all is mapped, and computes until it is killed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096ul
#define SIZE (64 * 1024ul)
#define FILES 20000
#define NAMES 4096
#define MAX_NAMES (16u << 20)
#define NODE 2

static int fuse, map;
/* What is no content is answered: an overlay asks for it when it is mounted. */
static int only_silent_reads;
static void *code;

static __attribute__((noreturn)) void fail(const char *what)
{
	fprintf(stderr, "hostile_mappings: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void answer(uint64_t unique, int error, const void *body, size_t size)
{
	unsigned char packet[sizeof(struct fuse_out_header) + 512];
	struct fuse_out_header head = { .len = sizeof(head) + size, .error = -error, .unique = unique };

	memcpy(packet, &head, sizeof(head));
	if (size)
		memcpy(packet + sizeof(head), body, size);
	if (write(fuse, packet, head.len) < 0)
		fail("answer");
}

static void reply(uint64_t unique, const void *body, size_t size)
{
	answer(unique, 0, body, size);
}

/* One folder with one file, which is called as you like; it is read for ever. */
static void serve(void)
{
	static unsigned char request[1 << 17];

	for (;;) {
		struct fuse_in_header *in = (void *)request;
		struct fuse_attr file = { .ino = NODE, .size = SIZE, .blocks = 1, .mode = S_IFREG | 0555, .nlink = 1, .blksize = PAGE };
		struct fuse_attr folder = { .ino = FUSE_ROOT_ID, .mode = S_IFDIR | 0755, .nlink = 2, .blksize = PAGE };
		ssize_t got = read(fuse, request, sizeof(request));

		if (got < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (got < (ssize_t)sizeof(*in))
			return;
		switch (in->opcode) {
		case FUSE_INIT: {
			struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = PAGE };

			reply(in->unique, &out, sizeof(out));
			break;
		}
		case FUSE_LOOKUP: {
			struct fuse_entry_out out = { .nodeid = NODE, .entry_valid = 3600, .attr_valid = 3600, .attr = file };

			reply(in->unique, &out, sizeof(out));
			break;
		}
		case FUSE_GETATTR: {
			struct fuse_attr_out out = { .attr_valid = 3600, .attr = in->nodeid == NODE ? file : folder };

			reply(in->unique, &out, sizeof(out));
			break;
		}
		case FUSE_OPEN: {
			struct fuse_open_out out = { .fh = 1 };

			reply(in->unique, &out, sizeof(out));
			break;
		}
		case FUSE_FLUSH:
			/* Whoever closes the overlay's file waits, too. */
			if (!only_silent_reads)
				answer(in->unique, ENOSYS, NULL, 0);
			break;
		case FUSE_STATFS: {
			struct fuse_statfs_out out = { .st = { .bsize = PAGE, .namelen = 255 } };

			if (only_silent_reads)
				reply(in->unique, &out, sizeof(out));
			break;
		}
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default: /* Nobody is ever answered. */
			if (only_silent_reads)
				answer(in->unique, ENOSYS, NULL, 0);
			break;
		}
	}
}

/* A file system that nobody serves. */
static void mount_silent(const char *folder)
{
	char options[128];

	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		fail("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	if (mount("hostile", folder, "fuse", MS_NOSUID | MS_NODEV, options))
		fail("mount");
	switch (fork()) {
	case -1:
		fail("fork");
	case 0:
		/* Nobody waits for its answers any longer than this process lives. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve();
		_exit(0);
	}
	close(fuse);
}

/* Maps a file that is never read to its end; over what is at `at`, unless that is NULL. */
static void silent(const char *folder, const char *name, int protection, void *at)
{
	char path[4096];
	int fd;

	mount_silent(folder);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		fail(path);
	if (mmap(at, at ? PAGE : SIZE, protection, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0) == MAP_FAILED)
		fail("mmap");
	close(fd);
}

/* Maps a library of an overlay over such a file system, and leaves it open: closing it takes for ever, too. */
static void overlaid(const char *folder)
{
	char over[4096], empty[4096], path[4200], options[8400];
	int fd;

	snprintf(over, sizeof(over), "%s.over", folder);
	snprintf(empty, sizeof(empty), "%s.empty", folder);
	if (mkdir(over, 0755) || mkdir(empty, 0755))
		fail(over);
	only_silent_reads = 1;
	mount_silent(folder);
	snprintf(options, sizeof(options), "lowerdir=%s:%s", folder, empty);
	if (mount("overlay", over, "overlay", MS_RDONLY, options))
		fail("overlay");
	snprintf(path, sizeof(path), "%s/libart.so", over);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		fail(path);
	if (mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED)
		fail("mmap");
}

static int code_file(const char *folder, unsigned number)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/code-%u", folder, number);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || pwrite(fd, "\177ELF", 4, 0) != 4 || ftruncate(fd, PAGE))
		fail(path);
	return fd;
}

static void map_code(int fd)
{
	if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		fail("mmap of code");
}

__attribute__((noinline)) static uint64_t compute(uint64_t x)
{
	for (int i = 0; i < 100000; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

/* As many names of the code, each as good as the others. */
static void name_again(unsigned number)
{
	static char lines[NAMES * 48];
	char *end = lines;

	for (unsigned last = number + NAMES; number < last; number++)
		end += sprintf(end, "%lx %lx n%x\n", (unsigned long)code, PAGE, number);
	if (write(map, lines, end - lines) != end - lines)
		fail("map");
}

/* What compute() does, in memory of its own, and a map that names it, in a /tmp of its own. */
static void *named_code(void)
{
	/* mov %rdi, %rax; mov $100000, %ecx; imul $0x4c957f2d, %rax, %rax; add $1, %rax; dec %ecx; jne; ret */
	static const unsigned char loop[] = { 0x48, 0x89, 0xf8, 0xb9, 0xa0, 0x86, 0x01, 0x00, 0x48, 0x69, 0xc0, 0x2d,
					      0x7f, 0x95, 0x4c, 0x48, 0x83, 0xc0, 0x01, 0xff, 0xc9, 0x75, 0xf1, 0xc3 };
	char path[64];

	code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		fail("mmap of code");
	memcpy(code, loop, sizeof(loop));
	if (mount("none", "/tmp", "tmpfs", 0, NULL))
		fail("/tmp");
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (map < 0)
		fail(path);
	name_again(0);
	return code;
}

static const char *kind, *folder;
/* The page that the arguments are on: the first of the stack, which its thread leaves alone. */
static void *arguments;

static void *run(void *unused)
{
	uint64_t (*work)(uint64_t) = compute;
	uint64_t x = 1;

	(void)unused;
	if (!strcmp(kind, "tunnel")) {
		silent(folder, "varid-tunnel", PROT_READ, NULL);
	} else if (!strcmp(kind, "code")) {
		silent(folder, "libart.so", PROT_READ | PROT_EXEC, NULL);
	} else if (!strcmp(kind, "overlay")) {
		overlaid(folder);
	} else if (!strcmp(kind, "arguments")) {
		silent(folder, "arguments", PROT_READ, arguments);
	} else if (!strcmp(kind, "many")) {
		int fd = code_file(folder, 0);

		while (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED)
			;
		/* The end of a thread, and what a library does, takes a few. */
	} else if (!strcmp(kind, "files")) {
		for (unsigned number = 0; number < FILES; number++) {
			int fd = code_file(folder, number);

			map_code(fd);
			close(fd);
		}
	} else if (!strcmp(kind, "name")) {
		char path[4096];
		void *library;

		snprintf(path, sizeof(path), "%s/lib\xff\xfe.so", folder);
		library = dlopen(path, RTLD_NOW);
		if (!library)
			fail(dlerror());
		*(void **)&work = dlsym(library, "named_work");
		if (!work)
			fail("named_work");
	} else if (!strcmp(kind, "names")) {
		work = (uint64_t (*)(uint64_t))named_code();
	} else {
		errno = EINVAL;
		fail(kind);
	}
	if (write(STDOUT_FILENO, "mapped\n", 7) != 7)
		fail("stdout");
	for (;;)
		x = work(x);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t worker;

	if (argc != 3) {
		fprintf(stderr, "usage: hostile_mappings KIND FOLDER\n");
		return 2;
	}
	kind = strdup(argv[1]);
	folder = strdup(argv[2]);
	arguments = (void *)((uintptr_t)argv[0] & ~(PAGE - 1));
	if (pthread_create(&worker, NULL, run, NULL))
		fail("thread");
	if (!strcmp(kind, "names")) {
		/* One that has been read once is no new map. */
		sleep(1);
		for (unsigned number = NAMES; number < MAX_NAMES; number += NAMES)
			name_again(number);
	}
	pause();
	return 1;
}
