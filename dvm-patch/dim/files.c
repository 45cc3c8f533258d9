/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes files, and checks that a descriptor still refers to dim's file.
 *
 * The process's descriptors belong to the app, which may close any of them and open others in
 * their place.
 */
#include "inside.h"
#include "syscall.h"

#define PATH_SIZE 256
#define PAGE 4096

static char folder[PATH_SIZE];

void dim_files_in(const char *path)
{
	unsigned long n;

	for (n = 0; path && path[n] && n < PATH_SIZE - 1; n++)
		folder[n] = path[n];
	/* A truncated path would name another folder: use none. */
	folder[path && path[n] ? 0 : n] = 0;
}

static void close_descriptor(long fd)
{
	dim_syscall(SYS_CLOSE, fd, 0, 0, 0, 0, 0);
}

/* Opens an unlinked file in folder. Returns its descriptor, or a negative value. */
static long open_file(const char *name)
{
	char path[PATH_SIZE + 64];
	unsigned long n = 0, i;
	long fd;

	while (folder[n]) {
		path[n] = folder[n];
		n++;
	}
	if (!n)
		return -1;
	path[n++] = '/';
	for (i = 0; name[i] && i < 32; i++)
		path[n++] = name[i];
	path[n++] = '.';
	n += dim_decimal(path + n, dim_process(), 10);
	path[n] = 0;
	fd = dim_syscall(SYS_OPENAT, DIM_CWD, (long)path,
			 DIM_O_RDWR | DIM_O_CREAT | DIM_O_EXCL | DIM_O_NOFOLLOW | DIM_O_CLOEXEC, 0600, 0, 0);
	if (fd >= 0)
		dim_syscall(SYS_UNLINKAT, DIM_CWD, (long)path, 0, 0, 0, 0);
	return fd;
}

/* Allocates the file's blocks now: a store to a page without space would kill the app. */
static int fill(long fd, unsigned long size)
{
	static const char zeros[PAGE];

	while (size) {
		unsigned long most = size < PAGE ? size : PAGE;
		long written = dim_syscall(SYS_WRITE, fd, (long)zeros, (long)most, 0, 0, 0);

		if (written <= 0)
			return 0;
		size -= (unsigned long)written;
	}
	return 1;
}

/* Opens a file of this size, in memory if possible. */
static long open_memory(const char *name, unsigned long size)
{
	int flags = DIM_MFD_CLOEXEC | DIM_MFD_ALLOW_SEALING;
	int is_sized;
	long fd = dim_syscall(SYS_MEMFD_CREATE, (long)name, flags | DIM_MFD_NOEXEC_SEAL, 0, 0, 0, 0);

	if (fd < 0)
		fd = dim_syscall(SYS_MEMFD_CREATE, (long)name, flags, 0, 0, 0, 0);
	if (fd >= 0) {
		is_sized = dim_syscall(SYS_FTRUNCATE, fd, (long)size, 0, 0, 0, 0) >= 0;
	} else {
		fd = open_file(name);
		if (fd < 0)
			return fd;
		is_sized = fill(fd, size);
	}
	if (is_sized)
		return fd;
	close_descriptor(fd);
	return -1;
}

void *dim_share(const char *name, unsigned long size, int mine, struct dim_file *file)
{
	long fd = open_memory(name, size);
	void *at;

	if (fd < 0)
		return 0;
	at = dim_map(size, DIM_PROT_READ | DIM_PROT_WRITE, DIM_MAP_SHARED, (int)fd);
	if (mine) /* kernels before 5.1 do not have this seal */
		dim_syscall(SYS_FCNTL, fd, DIM_F_ADD_SEALS, DIM_F_SEAL_FUTURE_WRITE, 0, 0, 0);
	dim_syscall(SYS_FCNTL, fd, DIM_F_ADD_SEALS, DIM_SEALS, 0, 0, 0);
	if (file && at)
		dim_keep(file, fd);
	else
		close_descriptor(fd);
	return at;
}

/* Finds the file that a descriptor refers to. Returns 0 if there is none. */
static int identify(long fd, struct dim_file *file)
{
	struct dim_status status;

	if (dim_syscall(SYS_FSTAT, fd, (long)&status, 0, 0, 0, 0) < 0)
		return 0;
	file->fd = (int)fd;
	file->device = status.device;
	file->number = status.number;
#if !defined(__LP64__)
	file->number >>= 32;
#endif
	return 1;
}

void dim_keep(struct dim_file *file, long fd)
{
	file->is_open = identify(fd, file);
}

int dim_is_own(const struct dim_file *file)
{
	struct dim_file now;

	return file->is_open && identify(file->fd, &now) && now.device == file->device && now.number == file->number;
}

int dim_replace(struct dim_file *file, long fd)
{
	int replaced;

	if (!dim_is_own(file)) {
		dim_keep(file, fd);
		return file->is_open;
	}
	replaced = dim_syscall(SYS_DUP3, fd, file->fd, DIM_O_CLOEXEC, 0, 0, 0) >= 0;
	close_descriptor(fd);
	if (replaced)
		dim_keep(file, file->fd);
	return replaced;
}

void dim_close(struct dim_file *file)
{
	if (dim_is_own(file))
		close_descriptor(file->fd);
	file->is_open = 0;
}
