/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* walker.h for user space: reads go through a callback. */
#include "varid_record.h"

struct varid_walk;
static const varid_u8 *varid_user_window(struct varid_walk *walk, varid_u64 addr, varid_u64 size);

#define VARID_WINDOW_AT(walk, addr, size) varid_user_window(walk, addr, size)
#define VARID_ALONE_AT(walk, addr, size) varid_user_window(walk, addr, size)
#define VARID_OFFSET(offset) ((offset) & (VARID_WINDOW - 4))
#include "walker.h"

/* The walk comes first, so that pointers to the two can be cast to each other. */
struct varid_user_walk {
	struct varid_walk walk;
	int (*read)(void *context, void *dst, varid_u64 size, varid_u64 addr);
	void *context;
	varid_u8 window[VARID_SAVES_WINDOW + VARID_WORD_MAX];
};

static const varid_u8 *varid_user_window(struct varid_walk *walk, varid_u64 addr, varid_u64 size)
{
	struct varid_user_walk *user = (struct varid_user_walk *)walk;

	return user->read(user->context, user->window, size, addr) ? 0 : user->window;
}

int varid_user_walk_start(struct varid_user_walk *user, const struct varid_layout *layout, varid_u64 base,
			  varid_u32 tid, const struct varid_leaf *leaf);
int varid_user_walk_start(struct varid_user_walk *user, const struct varid_layout *layout, varid_u64 base,
			  varid_u32 tid, const struct varid_leaf *leaf)
{
	return varid_walk_start(&user->walk, layout, VARID_ALL_RULES, base, tid, leaf);
}

int varid_user_walk_step(struct varid_user_walk *user, const struct varid_layout *layout, struct varid_frame *out);
int varid_user_walk_step(struct varid_user_walk *user, const struct varid_layout *layout, struct varid_frame *out)
{
	return varid_walk_step(&user->walk, layout, VARID_ALL_RULES, out);
}

/* The leaf of a thread with HotSpot. */
struct varid_user_leaf {
	varid_u64 ip;
	varid_u64 sp;
	varid_u64 fp;
	varid_u64 r15;    /* that register */
	varid_u64 thread; /* its JavaThread, if it is known; else 0 */
	varid_u64 stack;  /* where the record's copy of the stack starts */
};

/* Takes the next frame. Returns nonzero if the walk may start at it, and stays there. */
static int varid_user_try(struct varid_user_walk *user, const struct varid_jvm *jvm, struct varid_java *java)
{
	struct varid_java after = *java;
	struct varid_java_frame frame;

	return varid_step_java(&user->walk, jvm, &after, &frame) == VARID_WALK_FRAME && varid_java_leads_on(jvm, &after);
}

int varid_user_java(struct varid_user_walk *user, const struct varid_jvm *jvm, const struct varid_user_leaf *leaf,
		    struct varid_java_frame *out, int most);
/* Takes at most `most` frames, as the BPF program does. Returns their number. */
int varid_user_java(struct varid_user_walk *user, const struct varid_jvm *jvm, const struct varid_user_leaf *leaf,
		    struct varid_java_frame *out, int most)
{
	struct varid_java java = { .stack = leaf->stack, .thread = leaf->thread };
	enum varid_java_start start =
		varid_start_java(&user->walk, jvm, &java, leaf->ip, leaf->sp, leaf->fp, leaf->r15, out);
	int count = (start == VARID_JAVA_MORE || out->sender) && out->code, starts;

	for (starts = 0; starts < VARID_JAVA_STARTS && !java.entry; starts++) {
		while (start == VARID_JAVA_MORE || (start == VARID_JAVA_TRY && !varid_user_try(user, jvm, &java)))
			start = varid_scan_java(&user->walk, jvm, &java, leaf->sp, leaf->fp);
		if (start == VARID_JAVA_NOWHERE)
			break;
		while (count < most && varid_step_java(&user->walk, jvm, &java, out + count) == VARID_WALK_FRAME) {
			count++;
			if (java.resumes && count < most) {
				varid_java_resumes(&java, out[count - 1].at, out + count);
				count++;
			}
		}
		start = VARID_JAVA_MORE;
	}
	return count;
}
