/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who says that calls should be counted, and until when?
 *
 * varid writes what it wants to a page that the VM looks at a few times a second, and holds a lock
 * on that file; with the lock the wish ends.
 */
#include "calls.h"
#include "inside.h"
#include "syscall.h"

/* A VM that counts from its start on waits so long for a varid. */
#define PATIENCE 10000000000ull

static struct {
	int ready;
	struct varid_control *control; /* null: the VM does not count */
	struct dim_file file;
	dim_switched *switched;
	varid_u32 seen;     /* generation of the control page at the last look */
	varid_u64 patience; /* until when nobody is waited for */
	int polling;
	int told;                    /* the VM: that events are wanted */
	struct varid_control wanted; /* the control page as it was then */
	struct varid_control next;
} state;

/* 1 if the VM does as it is told. */
static int tell(int on)
{
	if (state.told != on && state.switched && !state.switched(on))
		return 0;
	state.told = on;
	return 1;
}

static void stop(void)
{
	int was_on = dim_calls_wanted;

	dim_calls_wanted = 0;
	tell(0);
	if (!was_on)
		return;
	dim_log_to("");
	dim_tell_tactic(VARID_LOAD_FROM_DEX);
}

/* Counts as state.wanted says. */
static void start(void)
{
	struct varid_calls *calls = dim_table_make();
	int goes_on = dim_calls_wanted, begins, is_first;

	if (!calls)
		return;
	begins = calls->session != state.wanted.session;
	/* What counted from the VM's start on is the first session's. */
	is_first = goes_on && !calls->session;
	dim_table_renew(&state.wanted, begins && !is_first);
	if ((begins || !goes_on) && !(is_first && dim_log_on))
		dim_log_to((const char *)state.wanted.log);
	if (goes_on)
		return;
	__sync_synchronize();
	dim_calls_wanted = 1;
	if (tell(1)) {
		dim_tell_tactic(VARID_METHOD_INVOKE);
		return;
	}
	calls->refused++;
	stop();
}

static int has_end(const varid_u8 *text, unsigned long size)
{
	while (size--)
		if (!*text++)
			return 1;
	return 0;
}

static int is_valid(const struct varid_control *control)
{
	varid_u32 i;

	if (control->tactic > VARID_METHOD_INVOKE || control->filter_count > VARID_FILTERS || !control->session)
		return 0;
	if (!has_end(control->log, VARID_CONTROL_LOG) || (control->log[0] && control->log[0] != '/'))
		return 0;
	for (i = 0; i < control->filter_count; i++)
		if (!control->filters[i].prefix[0] || !has_end(control->filters[i].prefix, VARID_FILTER_SIZE))
			return 0;
	return 1;
}

static int is_owned(void)
{
	struct dim_lock lock = { DIM_F_WRLCK, 0, 0, 0, 0 };

	return dim_is_own(&state.file) &&
	       !dim_syscall(SYS_FCNTL, state.file.fd, DIM_F_GETLK, (long)&lock, 0, 0, 0) &&
	       lock.type != DIM_F_UNLCK;
}

static void look(void)
{
	volatile varid_u32 *generation = &state.control->generation;
	struct varid_calls *calls = dim_table();
	varid_u32 now = *generation;

	if (now == state.seen && !dim_calls_wanted)
		return;
	if (!is_owned()) {
		/* A varid may come to a VM that counts from its start on. */
		if (calls && (calls->session || dim_now() >= state.patience))
			stop();
		state.seen = now;
		return;
	}
	if (now == state.seen || now & 1)
		return;
	__sync_synchronize();
	dim_copy(&state.next, state.control, sizeof(state.next));
	__sync_synchronize();
	if (*generation != now)
		return;
	state.seen = now;
	if (!is_valid(&state.next)) {
		if (calls)
			calls->refused++;
		stop();
		return;
	}
	dim_copy(&state.wanted, &state.next, sizeof(state.wanted));
	if (state.wanted.tactic == VARID_METHOD_INVOKE)
		start();
	else
		stop();
}

/* One thread at a time looks or ends; 0: another one is at it, and ends it if that is wanted meanwhile. */
static int begin_turn(void)
{
	return !__sync_lock_test_and_set(&state.polling, 1);
}

static void end_turn(void)
{
	__sync_lock_release(&state.polling);
	__sync_synchronize();
}

/* What was counted stays readable for those who have it open. */
static void end(void)
{
	dim_ended = 1;
	__sync_synchronize();
	if (begin_turn()) {
		stop();
		end_turn();
	}
}

void dim_calls_poll(void)
{
	if (!state.ready)
		return;
	dim_after_fork();
	if (!begin_turn())
		return;
	if (state.control && !dim_ended)
		look();
	if (!dim_calls_wanted) /* a forked child's VM was its parent's */
		tell(0);
	end_turn();
	if (dim_ended)
		end();
}

static void make_control(void)
{
	struct varid_file file = { 0, sizeof(struct varid_control), 0, 0 };
	struct varid_control *control = dim_share(VARID_CONTROL_NAME, sizeof(*control), 0, &state.file);

	if (!control)
		return;
	control->version = VARID_CONTROL_VERSION;
	control->size = sizeof(*control);
	__sync_synchronize();
	dim_copy(control->magic, VARID_CONTROL_MAGIC, sizeof(control->magic));
	state.seen = 0;
	state.control = control;
	file.address = (unsigned long)control;
	file.fd = (varid_u32)state.file.fd;
	dim_tell_file(0, &file);
}

static int is_method_invoke(const char *tactic)
{
	static const char name[] = "method-invoke";
	unsigned long i;

	for (i = 0; tactic && i < sizeof(name); i++)
		if (tactic[i] != name[i])
			return 0;
	return tactic != 0;
}

/* The parent's files stay the parent's; the VM hears of it at the next turn. */
static void after_fork(int has_tunnel)
{
	dim_calls_wanted = 0;
	state.polling = 0;
	dim_log_fork();
	if (state.control)
		dim_unmap(state.control, sizeof(*state.control));
	dim_close(&state.file);
	state.control = 0;
	state.wanted.session = 0;
	dim_ended = !has_tunnel;
	dim_table_fork(has_tunnel);
	if (has_tunnel)
		make_control();
}

/* What methods' names begin with, a semicolon between two. 0: there is no room for it. */
static int take_filters(struct varid_control *order, const char *text)
{
	unsigned long size = 0;

	for (; text && *text; text++) {
		if (*text == ';') {
			size = 0;
			continue;
		}
		if (!size && order->filter_count == VARID_FILTERS)
			return 0;
		order->filter_count += !size;
		if (size == VARID_FILTER_SIZE - 1)
			return 0;
		order->filters[order->filter_count - 1].prefix[size++] = (varid_u8)*text;
	}
	return 1;
}

void dim_calls_init(dim_describe *describe, dim_switched *switched, const char *tactic, const char *log,
		    const char *filters)
{
	unsigned long i;

	if (state.ready)
		return;
	make_control();
	if (!state.control)
		return;
	state.ready = 1;
	state.switched = switched;
	dim_table_init(describe);
	dim_follow(after_fork, end);
	if (!is_method_invoke(tactic))
		return;
	for (i = 0; log && log[0] == '/' && log[i] && i < VARID_CONTROL_LOG - 1; i++)
		state.wanted.log[i] = (varid_u8)log[i];
	if (!take_filters(&state.wanted, filters)) {
		struct varid_calls *calls = dim_table_make();

		if (calls)
			calls->refused++;
		return;
	}
	state.patience = dim_now() + PATIENCE;
	start();
}
