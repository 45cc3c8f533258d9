/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The differences between kernels from 3.10 on. All version checks of the module are here. */
#ifndef VARID_COMPAT_H
#define VARID_COMPAT_H

#include <linux/capability.h>
#include <linux/compiler.h>
#include <linux/hardirq.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#ifdef CONFIG_X86
#include <asm/page.h>
#include <asm/processor.h>
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(4, 11, 0)
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/task_stack.h>
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 17, 0)
#include <linux/timekeeping.h>
#endif
#ifdef user_read_access_begin /* 5.7 */
#include <linux/nospec.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(3, 10, 0)
#error "the module knows kernels from 3.10 on; its guide says what older ones would need"
#endif

#ifndef READ_ONCE /* 3.19 */
#define READ_ONCE(x) ACCESS_ONCE(x)
#define WRITE_ONCE(x, value) (ACCESS_ONCE(x) = (value))
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(4, 16, 0)
typedef unsigned int __poll_t;
#define EPOLLIN POLLIN
#define EPOLLRDNORM POLLRDNORM
#define EPOLLERR POLLERR
#endif

/* Returns true if the caller may observe all processes of a CPU. */
static inline bool varid_may_monitor(void)
{
#ifdef CAP_PERFMON /* 5.8 */
	if (capable(CAP_PERFMON))
		return true;
#endif
	return capable(CAP_SYS_ADMIN);
}

/*
 * Returns CLOCK_MONOTONIC in any context. Before 3.17, an NMI must not read it because it may have
 * interrupted an update: see VARID_NO_NMI.
 */
static inline u64 varid_clock(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 17, 0)
	return ktime_get_mono_fast_ns();
#else
	return ktime_to_ns(ktime_get());
#endif
}

/* Hardware counters cannot be used because they interrupt by NMI, in which the clock cannot be read. */
#if defined(CONFIG_X86) && LINUX_VERSION_CODE < KERNEL_VERSION(3, 17, 0)
#define VARID_NO_NMI 1
#else
#define VARID_NO_NMI 0
#endif

/*
 * Returns true if user addresses belong to the current process. An NMI during a task switch may see
 * the memory of the next task. copy_from_user_nmi checks this itself since 4.19,
 * copy_from_user_nofault since 6.4.
 */
static inline bool varid_memory_is_ours(void)
{
#if !defined(CONFIG_X86) || LINUX_VERSION_CODE >= KERNEL_VERSION(4, 19, 0)
	return true;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(4, 13, 0)
	return current->mm && read_cr3_pa() == __pa(current->mm->pgd);
#else
	return current->mm && (read_cr3() & PAGE_MASK) == __pa(current->mm->pgd);
#endif
}

/*
 * Copies from the interrupted process. Returns 0 if all bytes were copied. Never sleeps or faults
 * pages in. Checks the range itself, whatever address limit the interrupted code has set.
 */
static inline int varid_copy(void *to, u64 from, u32 size)
{
	if (from > TASK_SIZE - size || !varid_memory_is_ours())
		return -EFAULT;
#if defined(CONFIG_X86) && LINUX_VERSION_CODE >= KERNEL_VERSION(3, 13, 0)
	return copy_from_user_nmi(to, (const void __user *)(unsigned long)from, size) ? -EFAULT : 0;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 8, 0)
	return copy_from_user_nofault(to, (const void __user *)(unsigned long)from, size) ? -EFAULT : 0;
#else
	{
		unsigned long left;

		pagefault_disable();
		left = __copy_from_user_inatomic(to, (const void __user *)(unsigned long)from, size);
		pagefault_enable();
		return left ? -EFAULT : 0;
	}
#endif
}

/* Whether /proc/PID/status shows a process's pid namespace, from which the daemon derives VARID_TARGET_NAMESPACED. */
#define VARID_NAMESPACES_ARE_TOLD (LINUX_VERSION_CODE >= KERNEL_VERSION(4, 1, 0))

/*
 * Reads single words of the interrupted process without a call for each. Between varid_words_begin and
 * varid_words_end, no function may be called. varid_words_begin takes the address of one of the words,
 * and returns the end of the range in which words can be read, or 0 if they must be copied.
 * varid_get_word jumps to the label if a word cannot be read. Like varid_copy, it never sleeps or
 * faults pages in.
 */
#ifdef user_read_access_begin /* 5.7 */
static __always_inline unsigned long varid_words_begin(u64 first)
{
	const unsigned long end = TASK_SIZE - sizeof(long);

#ifdef CONFIG_X86
	u8 byte;

	/* Checks that the memory is that of the current process. This holds until the end of the overflow. */
	if (varid_copy(&byte, first, sizeof(byte)))
		return 0;
#endif
	if (first >= end)
		return 0;
	pagefault_disable();
	if (user_read_access_begin((const void __user *)(unsigned long)first, sizeof(long)))
		return end;
	pagefault_enable();
	return 0;
}

static __always_inline void varid_words_end(void)
{
	user_read_access_end();
	pagefault_enable();
}

/* Addresses have been compared with end, but speculative execution may bypass the comparison. */
#ifdef CONFIG_ARM64
#define varid_below(at, end) ((unsigned long)(at)) /* user accesses are limited to user memory, also in speculation */
#else
#define varid_below(at, end) array_index_nospec((unsigned long)(at), end)
#endif

#if defined(CONFIG_ARM64) && LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
/* unsafe_get_user of this kernel repeats the checks of varid_words_begin for each word. */
#define varid_load_word(word, from, label)								\
	do {												\
		int load_error = 0;									\
													\
		__raw_get_user(word, uaccess_mask_ptr(from), load_error);				\
		if (load_error)										\
			goto label;									\
	} while (0)
#else
#define varid_load_word(word, from, label) unsafe_get_user(word, from, label)
#endif

#define varid_get_word(word, at, end, label)								\
	do {												\
		const u64 get_at = (at);								\
													\
		if (get_at >= (end) || get_at % sizeof(word))						\
			goto label;									\
		varid_load_word(word, (const typeof(word) __user *)varid_below(get_at, end), label);	\
	} while (0)
#else
#define varid_words_begin(first) 0ul
#define varid_words_end() do { } while (0)
#define varid_get_word(word, at, end, label)								\
	do {												\
		(void)(end);										\
		(word) = (at);										\
		goto label;										\
	} while (0)
#endif

/* Returns true if the user may read the process's memory. This is false after a set-user-id exec or prctl(PR_SET_DUMPABLE, 0). */
static inline bool varid_is_dumpable(struct mm_struct *mm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 13, 0)
	return get_dumpable(mm) == SUID_DUMP_USER;
#else
	return (mm->flags & MMF_DUMPABLE_MASK) == SUID_DUMP_USER;
#endif
}

/* Stores the kernel stack of this task, innermost first. Returns the number of addresses. */
static inline u32 varid_kernel_stack(unsigned long *addresses, u32 most)
{
#ifndef CONFIG_STACKTRACE
	return 0;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 2, 0)
	return stack_trace_save(addresses, most, 0);
#else
	struct stack_trace trace = { .entries = addresses, .max_entries = most };

	save_stack_trace(&trace);
	return trace.nr_entries;
#endif
}

/* Makes a mapping that is not inherited by fork, not dumped in cores, and cannot be extended by mremap. */
static inline void varid_keep_private(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
#else
	vma->vm_flags |= VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
#endif
}

#endif
