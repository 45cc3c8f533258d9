// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/varid: opens, configures, maps and releases a session or a tunnel. */
#include <linux/compat.h>
#include <linux/cpu.h>
#include <linux/elf-em.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "arch.h"
#include "compat.h"
#include "varid.h"

static ushort mode = 0600;
module_param(mode, ushort, 0444);
MODULE_PARM_DESC(mode, "permissions of /dev/varid: 0666 lets every process have a tunnel; sessions need CAP_PERFMON");

/* An open file: without a role at first, then a session or a tunnel. */
struct varid_opened {
	struct mutex lock; /* protects the role */
	struct varid_session *session;
	struct varid_tunnel_memory *tunnel;
};

static int open(struct inode *inode, struct file *file)
{
	struct varid_opened *opened = kzalloc(sizeof(*opened), GFP_KERNEL);

	if (!opened)
		return -ENOMEM;
	mutex_init(&opened->lock);
	file->private_data = opened;
	return nonseekable_open(inode, file);
}

static void wake_readers(struct irq_work *work)
{
	wake_up_interruptible(&container_of(work, struct varid_ring, wake)->session->readers);
}

static void free_ring(struct varid_ring *ring)
{
	if (!ring)
		return;
	irq_work_sync(&ring->wake);
	vfree(ring->scratch);
	vfree(ring->control);
	kfree(ring);
}

static struct varid_ring *new_ring(struct varid_session *session)
{
	struct varid_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL);

	if (!ring)
		return NULL;
	ring->session = session;
	ring->size = session->ring_pages * PAGE_SIZE;
	init_irq_work(&ring->wake, wake_readers);
	ring->control = vmalloc_user(PAGE_SIZE + ring->size);
	ring->scratch = vzalloc(varid_scratch_size());
	if (!ring->control || !ring->scratch) {
		free_ring(ring);
		return NULL;
	}
	ring->data = (u8 *)ring->control + PAGE_SIZE;
	return ring;
}

/* Frees a session whose file is closed and unmapped, so that nothing refers to it. */
static void free_session(struct varid_session *session)
{
	u32 i;

	for (i = 0; i < session->counter_count; i++) {
		/* No overflow of the event runs after this returns. */
		perf_event_release_kernel(session->counters[i]->event);
		kfree(session->counters[i]);
	}
	for (i = 0; session->rings && i < nr_cpu_ids; i++)
		free_ring(session->rings[i]);
	varid_targets_free(&session->targets);
	vfree(session->counters);
	kfree(session->rings);
	kfree(session);
}

static int release(struct inode *inode, struct file *file)
{
	struct varid_opened *opened = file->private_data;

	if (opened->session)
		free_session(opened->session);
	if (opened->tunnel)
		varid_tunnel_free(opened->tunnel);
	kfree(opened);
	return 0;
}

static long begin_session(struct varid_opened *opened, struct varid_module_session __user *from)
{
	struct varid_module_session asked;
	struct varid_session *session;
	long result = -EBUSY;

	if (!varid_may_monitor())
		return -EPERM;
	if (copy_from_user(&asked, from, sizeof(asked)))
		return -EFAULT;
	if (asked.version != VARID_MODULE_VERSION)
		return -EPROTO;
	if (!is_power_of_2(asked.ring_pages) || asked.ring_pages > VARID_MODULE_MAX_RING_PAGES ||
	    asked.raw_stack > VARID_STACK_FULL || asked.raw_stack % 8)
		return -EINVAL;
	asked.machine = VARID_MACHINE;
	if (copy_to_user(from, &asked, sizeof(asked)))
		return -EFAULT;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	mutex_init(&session->lock);
	init_waitqueue_head(&session->readers);
	varid_targets_init(&session->targets);
	session->ring_pages = asked.ring_pages;
	session->raw_stack = asked.raw_stack;
	session->raw_regs = asked.raw_regs;
	session->rings = kcalloc(nr_cpu_ids, sizeof(*session->rings), GFP_KERNEL);
	session->counters = vzalloc(VARID_MODULE_MAX_COUNTERS * sizeof(*session->counters));
	if (!session->rings || !session->counters) {
		free_session(session);
		return -ENOMEM;
	}
	mutex_lock(&opened->lock);
	if (!opened->session && !opened->tunnel) {
		smp_wmb(); /* publish after initialization: readers do not lock */
		WRITE_ONCE(opened->session, session);
		result = 0;
	}
	mutex_unlock(&opened->lock);
	if (result)
		free_session(session);
	return result;
}

/*
 * Returns true for software events and those of a core's own counters. Tracepoints, breakpoints and
 * probes are rejected: the caller chooses their addresses and text, and sampling does not need them.
 * Uncore PMUs are rejected because their counts are unrelated to the interrupted task. The type of
 * probes is not known beforehand, so the event already exists here. It is released before it is
 * enabled.
 */
static bool is_sampled_by(const struct perf_event *event)
{
	return event->attr.type == PERF_TYPE_SOFTWARE || event->pmu->task_ctx_nr == perf_hw_context;
}

static long add_counter(struct varid_session *session, const struct varid_module_counter *asked)
{
	struct perf_event_attr attr = {
		.type = asked->type,
		.size = sizeof(attr),
		.config = asked->config,
		.config1 = asked->config1,
		.config2 = asked->config2,
		.sample_period = asked->rate,
		.sample_type = PERF_SAMPLE_PERIOD,
		.disabled = 1,
		.freq = !!(asked->flags & VARID_COUNTER_FREQUENCY),
		.exclude_user = !!(asked->flags & VARID_COUNTER_EXCLUDE_USER),
		.exclude_kernel = !!(asked->flags & VARID_COUNTER_EXCLUDE_KERNEL),
		.exclude_hv = 1,
	};
	struct varid_event *counter;
	struct perf_event *event;

	if (session->counter_count >= VARID_MODULE_MAX_COUNTERS)
		return -ENOSPC;
	if (!session->rings[asked->cpu]) {
		struct varid_ring *ring = new_ring(session);

		if (!ring)
			return -ENOMEM;
		smp_wmb(); /* publish after initialization: poll does not lock */
		WRITE_ONCE(session->rings[asked->cpu], ring);
	}
	counter = kzalloc(sizeof(*counter), GFP_KERNEL);
	if (!counter)
		return -ENOMEM;
	counter->ring = session->rings[asked->cpu];
	counter->id = session->counter_count;
	counter->flags = asked->flags;
	counter->clock = asked->type == PERF_TYPE_SOFTWARE &&
			 (asked->config == PERF_COUNT_SW_CPU_CLOCK || asked->config == PERF_COUNT_SW_TASK_CLOCK);
	get_random_bytes(&counter->random, sizeof(counter->random));
	counter->random |= 1; /* xorshift of zero is zero */
	event = perf_event_create_kernel_counter(&attr, asked->cpu, NULL, varid_overflow, counter);
	if (IS_ERR(event)) {
		kfree(counter);
		return PTR_ERR(event);
	}
	if (!is_sampled_by(event)) {
		perf_event_release_kernel(event);
		kfree(counter);
		return -EOPNOTSUPP;
	}
	counter->event = event;
	counter->armed = event->hw.sample_period;
	session->counters[session->counter_count++] = counter;
	return counter->id;
}

static long begin_counter(struct varid_session *session, struct varid_module_counter __user *from)
{
	const u32 known = VARID_COUNTER_FREQUENCY | VARID_COUNTER_EXCLUDE_USER | VARID_COUNTER_EXCLUDE_KERNEL |
			  VARID_COUNTER_JITTER;
	struct varid_module_counter asked;
	long id;

	if (copy_from_user(&asked, from, sizeof(asked)))
		return -EFAULT;
	if (asked.flags & ~known || asked.cpu >= nr_cpu_ids || !cpu_possible(asked.cpu) || !asked.rate ||
	    asked.rate > (asked.flags & VARID_COUNTER_FREQUENCY ? 1000000 : S64_MAX))
		return -EINVAL;
	if (asked.type == PERF_TYPE_TRACEPOINT || asked.type == PERF_TYPE_BREAKPOINT)
		return -EOPNOTSUPP;
	if (VARID_NO_NMI && asked.type != PERF_TYPE_SOFTWARE)
		return -EOPNOTSUPP;
	mutex_lock(&session->lock);
	id = add_counter(session, &asked);
	mutex_unlock(&session->lock);
	if (id < 0)
		return id;
	asked.id = id;
	return copy_to_user(from, &asked, sizeof(asked)) ? -EFAULT : 0;
}

static void switch_counters(struct varid_session *session, bool on)
{
	u32 i;

	for (i = 0; i < session->counter_count; i++) {
		if (on)
			perf_event_enable(session->counters[i]->event);
		else
			perf_event_disable(session->counters[i]->event);
	}
}

static long read_value(struct varid_session *session, struct varid_module_value __user *from)
{
	struct varid_module_value value;
	u64 enabled = 0, running = 0;

	if (copy_from_user(&value, from, sizeof(value)))
		return -EFAULT;
	mutex_lock(&session->lock);
	if (value.id < session->counter_count)
		value.value = perf_event_read_value(session->counters[value.id]->event, &enabled, &running);
	else
		value.id = U32_MAX;
	mutex_unlock(&session->lock);
	if (value.id == U32_MAX || value.reserved)
		return -EINVAL;
	value.enabled = enabled;
	value.running = running;
	return copy_to_user(from, &value, sizeof(value)) ? -EFAULT : 0;
}

static long read_counts(struct varid_session *session, struct varid_module_counts __user *to)
{
	struct varid_module_counts counts = {};
	u32 cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		const struct varid_ring *ring = READ_ONCE(session->rings[cpu]);

		if (!ring)
			continue;
		counts.samples += READ_ONCE(ring->samples);
		counts.no_space += READ_ONCE(ring->no_space);
		counts.throttled += READ_ONCE(ring->throttled);
	}
	return copy_to_user(to, &counts, sizeof(counts)) ? -EFAULT : 0;
}

static long set_target(struct varid_session *session, const struct varid_module_target __user *from)
{
	struct varid_module_target set;
	long result;

	if (copy_from_user(&set, from, sizeof(set)))
		return -EFAULT;
	mutex_lock(&session->lock);
	result = varid_targets_set(&session->targets, &set);
	mutex_unlock(&session->lock);
	return result;
}

static long ioctl(struct file *file, unsigned int request, unsigned long argument)
{
	struct varid_opened *opened = file->private_data;
	struct varid_session *session = READ_ONCE(opened->session);
	void __user *at = (void __user *)argument;
	long result = 0;

	if (request == VARID_MODULE_SESSION)
		return begin_session(opened, at);
	if (!session)
		return -ENOTTY;
	switch (request) {
	case VARID_MODULE_COUNTER:
		return begin_counter(session, at);
	case VARID_MODULE_TARGET:
		return set_target(session, at);
	case VARID_MODULE_VALUE:
		return read_value(session, at);
	case VARID_MODULE_COUNTS:
		return read_counts(session, at);
	}
	mutex_lock(&session->lock);
	switch (request) {
	case VARID_MODULE_FORGET:
		result = varid_targets_forget(&session->targets, argument);
		break;
	case VARID_MODULE_ENABLE:
	case VARID_MODULE_DISABLE:
		switch_counters(session, request == VARID_MODULE_ENABLE);
		break;
	default:
		result = -ENOTTY;
	}
	mutex_unlock(&session->lock);
	return result;
}

#ifdef CONFIG_COMPAT
static long compat_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
	if (request == VARID_MODULE_FORGET)
		return ioctl(file, request, argument);
	return ioctl(file, request, (unsigned long)compat_ptr(argument));
}
#endif

static int map_ring(struct varid_session *session, struct vm_area_struct *vma)
{
	const unsigned long pages = session->ring_pages + 1;
	const unsigned long cpu = vma->vm_pgoff / pages;
	struct varid_ring *ring;

	if (cpu >= nr_cpu_ids || vma->vm_pgoff % pages || vma_pages(vma) != pages || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	ring = READ_ONCE(session->rings[cpu]);
	if (!ring)
		return -ENXIO;
	varid_keep_private(vma);
	return remap_vmalloc_range(vma, ring->control, 0);
}

static int mmap(struct file *file, struct vm_area_struct *vma)
{
	struct varid_opened *opened = file->private_data;
	int result;

	mutex_lock(&opened->lock);
	if (opened->session)
		result = map_ring(opened->session, vma);
	else
		result = opened->tunnel ? -EBUSY : varid_tunnel_map(&opened->tunnel, vma);
	mutex_unlock(&opened->lock);
	return result;
}

static __poll_t poll(struct file *file, poll_table *table)
{
	struct varid_opened *opened = file->private_data;
	struct varid_session *session = READ_ONCE(opened->session);
	u32 cpu;

	if (!session)
		return EPOLLERR;
	poll_wait(file, &session->readers, table);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		const struct varid_ring *ring = READ_ONCE(session->rings[cpu]);

		if (ring && varid_ring_is_filling(ring))
			return EPOLLIN | EPOLLRDNORM;
	}
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE, /* prevents unloading while a file is open or mapped */
	.open = open,
	.release = release,
	.unlocked_ioctl = ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = compat_ioctl,
#endif
	.mmap = mmap,
	.poll = poll,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "varid",
	.fops = &operations,
};

static int __init varid_init(void)
{
	if (mode & ~0666)
		return -EINVAL;
	device.mode = mode;
	return misc_register(&device);
}

static void __exit varid_exit(void)
{
	misc_deregister(&device);
}

module_init(varid_init);
module_exit(varid_exit);
MODULE_DESCRIPTION("varid: managed frames at the instant of a PMU interrupt");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("0.1.0");
