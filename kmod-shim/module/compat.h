/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What differs between kernels from 3.10 on; every version check of the module is here. */
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

/* Whether the caller may see what every process does on a CPU. */
static inline bool varid_may_monitor(void)
{
#ifdef CAP_PERFMON /* 5.8 */
	if (capable(CAP_PERFMON))
		return true;
#endif
	return capable(CAP_SYS_ADMIN);
}

/*
 * CLOCK_MONOTONIC, at any moment. Before 3.17 it must not be read where an NMI may have
 * interrupted its update: see VARID_NO_NMI.
 */
static inline u64 varid_clock(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 17, 0)
	return ktime_get_mono_fast_ns();
#else
	return ktime_to_ns(ktime_get());
#endif
}

/* Hardware counters cannot be used: they interrupt by NMI, and the clock cannot be read then. */
#if defined(CONFIG_X86) && LINUX_VERSION_CODE < KERNEL_VERSION(3, 17, 0)
#define VARID_NO_NMI 1
#else
#define VARID_NO_NMI 0
#endif

/*
 * Whether the memory that user addresses lead to is the current process's. An NMI amid a
 * switch of tasks may find the next one's there. copy_from_user_nmi asks this itself from
 * 4.19 on; copy_from_user_nofault only from 6.4 on.
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
 * Copies from the interrupted process; 0 if all bytes came. Never sleeps, never takes a
 * page in. The range is checked here, whatever address limit the interrupted code has set.
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

/* Whether /proc/PID/status says that a process is in a pid namespace, so that the daemon can. */
#define VARID_NAMESPACES_ARE_TOLD (LINUX_VERSION_CODE >= KERNEL_VERSION(4, 1, 0))

/*
 * Single words of the interrupted process, without a call for each: between varid_words_begin
 * and varid_words_end, where nothing may be called. The first returns where the words have to
 * lie below, or 0 if they have to be copied; first is the address of one of them. varid_get_word
 * goes to the label if there is none; as varid_copy, it never sleeps and takes no page in.
 */
#ifdef user_read_access_begin /* 5.7 */
static __always_inline unsigned long varid_words_begin(u64 first)
{
	const unsigned long end = TASK_SIZE - sizeof(long);

#ifdef CONFIG_X86
	u8 byte;

	/* Asks whether the memory is ours, which it then is until the overflow is over. */
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

/* What is read at once has been compared with end; in speculation it may not have been. */
#ifdef CONFIG_ARM64
#define varid_below(at, end) ((unsigned long)(at)) /* its user accesses reach user memory only, in speculation, too */
#else
#define varid_below(at, end) array_index_nospec((unsigned long)(at), end)
#endif

#if defined(CONFIG_ARM64) && LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
/* Its unsafe_get_user asks again, for each word, what varid_words_begin has asked for all. */
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

/* Whether a process's memory is its user's to read: not after a set-user-id exec or a prctl that says so. */
static inline bool varid_is_dumpable(struct mm_struct *mm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(3, 13, 0)
	return get_dumpable(mm) == SUID_DUMP_USER;
#else
	return (mm->flags & MMF_DUMPABLE_MASK) == SUID_DUMP_USER;
#endif
}

/* This task's own kernel stack, innermost first: how many addresses it took down. */
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

/* A mapping that a forked child does not get, a core dump does not show, mremap cannot widen. */
static inline void varid_keep_private(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
#else
	vma->vm_flags |= VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
#endif
}

#endif
