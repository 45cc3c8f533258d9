// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The processes that a session samples: changed by ioctls, looked up at overflows. */
#include <linux/rculist.h>
#include <linux/slab.h>

#include "compat.h"
#include "varid.h"

#define MAX_GENERATIONS 5

void varid_targets_init(struct varid_targets *targets)
{
	hash_init(targets->nodes);
	targets->rights.all = capable(CAP_SYS_PTRACE) || capable(CAP_SYS_ADMIN);
	targets->rights.opener = get_current_cred();
}

/* Called when no overflow can use the targets any more. */
void varid_targets_free(struct varid_targets *targets)
{
	struct varid_node *node;
	struct hlist_node *next;
	int bucket;

	hash_for_each_safe(targets->nodes, bucket, next, node, link)
		kfree(node);
	kfree(rcu_dereference_protected(targets->everyone, true));
	put_cred(targets->rights.opener);
}

static struct varid_node *find(struct varid_targets *targets, u32 pid)
{
	struct varid_node *node;

	hash_for_each_possible_rcu(targets->nodes, node, link, pid)
		if (node->pid == pid)
			return node;
	return NULL;
}

/* The caller holds the session's lock. */
int varid_targets_set(struct varid_targets *targets, const struct varid_module_target *set)
{
	struct varid_node *node, *old;

	if (set->reserved || set->target.rules & ~VARID_ALL_RULES)
		return -EINVAL;
	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return -ENOMEM;
	node->pid = set->pid;
	node->target = set->target;
	if (!set->pid) {
		old = rcu_dereference_protected(targets->everyone, true);
		rcu_assign_pointer(targets->everyone, node);
	} else {
		rcu_read_lock();
		old = find(targets, set->pid);
		rcu_read_unlock();
		if (!old && targets->count >= VARID_MODULE_MAX_TARGETS) {
			kfree(node);
			return -ENOSPC;
		}
		if (old)
			hlist_replace_rcu(&old->link, &node->link);
		else
			hash_add_rcu(targets->nodes, &node->link, node->pid);
		targets->count += !old;
	}
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

/* The caller holds the session's lock. */
int varid_targets_forget(struct varid_targets *targets, u32 pid)
{
	struct varid_node *node;

	rcu_read_lock();
	node = find(targets, pid);
	rcu_read_unlock();
	if (!node)
		return -ENOENT;
	hash_del_rcu(&node->link);
	targets->count--;
	kfree_rcu(node, rcu);
	return 0;
}

/*
 * Applies the checks of ptrace, except security modules, at the time of the overflow: user and
 * capabilities may have changed by an exec since the process was selected. Under RCU.
 */
static bool may_look(const struct varid_rights *rights)
{
	const struct cred *opener = rights->opener;
	const struct cred *its = __task_cred(current); /* not temporarily overridden credentials */

	if (rights->all)
		return true;
	return uid_eq(its->euid, opener->uid) && uid_eq(its->uid, opener->uid) && uid_eq(its->suid, opener->uid) &&
	       gid_eq(its->egid, opener->gid) && gid_eq(its->gid, opener->gid) && gid_eq(its->sgid, opener->gid) &&
	       its->user_ns == opener->user_ns && cap_issubset(its->cap_permitted, opener->cap_permitted) &&
	       (!current->mm || varid_is_dumpable(current->mm));
}

static const struct varid_target *target_of(struct varid_targets *targets, u32 *flags)
{
	struct varid_node *node = find(targets, current->tgid);
	struct task_struct *ancestor = current;
	int generation;

	if (node)
		return node->target.flags & VARID_TARGET_IGNORE ? NULL : &node->target;
	/* The daemon discovers children with a delay. By then there may be grandchildren. */
	for (generation = 0; generation < MAX_GENERATIONS; generation++) {
		ancestor = rcu_dereference(ancestor->real_parent);
		if (ancestor->tgid <= 1)
			break;
		node = find(targets, ancestor->tgid);
		if (!node)
			continue;
		if (!(node->target.flags & VARID_TARGET_FOLLOW))
			return NULL;
		*flags |= VARID_INHERITED;
		return &node->target;
	}
	node = rcu_dereference(targets->everyone);
	return node && node->target.flags ? &node->target : NULL;
}

/* Returns the target for the interrupted process, or NULL. Adds to a record's flags. Under RCU. */
const struct varid_target *varid_target_of_current(struct varid_targets *targets, u32 *flags)
{
	const struct varid_target *target = target_of(targets, flags);

	return target && may_look(&targets->rights) ? target : NULL;
}
