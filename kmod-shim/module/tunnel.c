// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The direct memory tunnel: memory that a process writes and that the kernel reads at an overflow by
 * its own address, so that no page can be absent. The process defines the contents, for example a
 * shadow stack that its layout refers to.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "varid.h"

static uint max_tunnels = 64;
module_param(max_tunnels, uint, 0644);
MODULE_PARM_DESC(max_tunnels, "processes that may have a tunnel at a time");

static LIST_HEAD(tunnels);
static DEFINE_MUTEX(tunnels_lock);
static uint tunnel_count;

/* The mapping was split, moved or copied, so it is plain memory from now on. */
static void opened(struct vm_area_struct *vma)
{
	struct varid_tunnel_memory *tunnel = vma->vm_private_data;

	WRITE_ONCE(tunnel->mm, NULL);
}

static void closed(struct vm_area_struct *vma)
{
	opened(vma);
}

static const struct vm_operations_struct operations = {
	.open = opened,
	.close = closed,
};

/* Makes the only mapping of a file that is not a session. The caller holds the file's lock. */
int varid_tunnel_map(struct varid_tunnel_memory **mapped, struct vm_area_struct *vma)
{
	unsigned long size = vma->vm_end - vma->vm_start;
	struct varid_tunnel_memory *tunnel;
	int result;

	if (vma->vm_pgoff || size > VARID_MODULE_MAX_TUNNEL || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	tunnel = kzalloc(sizeof(*tunnel), GFP_KERNEL);
	if (!tunnel)
		return -ENOMEM;
	tunnel->memory = vmalloc_user(size);
	result = tunnel->memory ? remap_vmalloc_range(vma, tunnel->memory, 0) : -ENOMEM;
	if (result)
		goto failed;
	tunnel->mm = current->mm;
	tunnel->start = vma->vm_start;
	tunnel->size = size;

	mutex_lock(&tunnels_lock);
	result = tunnel_count < max_tunnels ? 0 : -EUSERS;
	if (!result) {
		tunnel_count++;
		list_add_rcu(&tunnel->link, &tunnels);
	}
	mutex_unlock(&tunnels_lock);
	if (result)
		goto failed;
	varid_keep_private(vma);
	vma->vm_private_data = tunnel;
	vma->vm_ops = &operations;
	*mapped = tunnel;
	return 0;

failed:
	vfree(tunnel->memory);
	kfree(tunnel);
	return result;
}

/* Called when the last user of the file is gone, and with it every mapping. */
void varid_tunnel_free(struct varid_tunnel_memory *tunnel)
{
	mutex_lock(&tunnels_lock);
	tunnel_count--;
	list_del_rcu(&tunnel->link);
	mutex_unlock(&tunnels_lock);
	synchronize_rcu();
	vfree(tunnel->memory);
	kfree(tunnel);
}

/* Returns the tunnel of a process, or NULL. Under RCU. */
const struct varid_tunnel_memory *varid_tunnel_of(const struct mm_struct *mm)
{
	struct varid_tunnel_memory *tunnel;

	if (!mm)
		return NULL;
	list_for_each_entry_rcu(tunnel, &tunnels, link)
		if (READ_ONCE(tunnel->mm) == mm)
			return tunnel;
	return NULL;
}
