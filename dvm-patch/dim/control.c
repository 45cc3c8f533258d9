/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Carries out varid's orders to count calls.
 *
 * varid writes its orders to a page that the VM polls a few times a second, and holds a lock on that file.
 * When the lock is released, the orders are void.
 */
#include "calls.h"
#include "inside.h"
#include "syscall.h"

/* How long a VM that counts from its start waits for a varid, in nanoseconds. */
#define PATIENCE 10000000000ull

static struct {
	int ready;
	struct varid_control *control; /* null: the VM does not count */
	struct dim_file file;
	dim_switched *switched;
	varid_u32 seen;     /* generation of the control page when it was last read */
	varid_u64 patience; /* time at which waiting for a varid ends */
	int polling;
	int told;                    /* last state passed to switched() */
	struct varid_control wanted; /* the last valid contents of the control page */
	struct varid_control next;
} state;

/* Switches the VM's events. Returns 1 on success. */
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

/* Counts according to state.wanted. */
static void start(void)
{
	struct varid_calls *calls = dim_table_make();
	int goes_on = dim_calls_wanted, begins, is_first;

	if (!calls)
		return;
	begins = calls->session != state.wanted.session;
	/* The first session takes over the counts since the VM's start. */
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
		/* A varid may still come to a VM that counts from its start. */
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

/*
 * Excludes other threads from polling and ending. Returns 0 if another thread is active: it ends dim
 * itself if that is requested meanwhile.
 */
static int begin_turn(void)
{
	return !__sync_lock_test_and_set(&state.polling, 1);
}

static void end_turn(void)
{
	__sync_lock_release(&state.polling);
	__sync_synchronize();
}

/* Stops counting. The counts stay readable for processes that have the file open. */
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
	if (!dim_calls_wanted) /* a forked child inherits the state of its parent's VM */
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

/* Closes the parent's files in a child. The VM's events are stopped at the next poll. */
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

/* Parses prefixes of methods' names, separated by semicolons. Returns 0 if there is no space for them. */
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
