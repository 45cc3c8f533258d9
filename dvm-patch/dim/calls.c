/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts calls.
 *
 * Each called method has an entry in a file that varid reads, also after the process has ended. A hash table in private
 * memory finds the entry of the VM's pointer in at most PROBES steps. Entries are made under a lock and never moved.
 * Counting takes no lock.
 */
#include "calls.h"
#include "inside.h"
#include "syscall.h"

#define SLOTS (1u << 17) /* twice the maximum number of entries */
#define PROBES 16
#define NONE 0xffffffffu
#define CALLS_SIZE (VARID_CALLS_ENTRIES + VARID_MAX_CALLS * sizeof(struct varid_call))
#define PAGE 4096

int dim_calls_wanted;
int dim_ended;

struct name {
	const char *descriptor;
	const char *method;
};

/* The data that leads to an entry. Each load depends on the previous one, so no barrier is needed between them. */
struct table {
	struct varid_calls *calls;
	struct varid_call *entries;
	varid_u32 count;           /* of entries; private, so a forked child has its own */
	varid_u32 slots[SLOTS];    /* 0: free, else the index of the entry + 1 */
	struct name names[VARID_MAX_CALLS]; /* of the entries' methods, unless these are retired */
};

static struct {
	struct table *table; /* null: not needed so far */
	struct dim_file file;
	struct varid_control order; /* the order whose filter applies */
	dim_describe *describe;
	int inserting;
	int failed; /* there was no space for the table */
} state;

/*
 * Pointer to the table, in a page that the kernel wipes in a forked child (MADV_WIPEONFORK, from Linux 4.14 on): a child
 * does not count in its parent's table, whether or not dim_after_fork is called.
 */
static struct table *no_page;
static struct table **table_page = &no_page;

DIM_INLINE struct table *table(void)
{
	return *(struct table *volatile *)table_page;
}

/* Fibonacci hashing: methods differ in their middle bits. */
static varid_u32 first_slot(varid_u64 method)
{
	return (varid_u32)((method * 0x9e3779b97f4a7c15ull) >> 47) & (SLOTS - 1);
}

/* dex: the start of the method's dex file; 0: any. */
DIM_INLINE varid_u32 find(const struct table *in, varid_u64 method, varid_u64 dex)
{
	varid_u32 slot = first_slot(method), i;

	for (i = 0; i < PROBES; i++) {
		varid_u32 entry = ((const volatile varid_u32 *)in->slots)[(slot + i) & (SLOTS - 1)];

		if (!entry)
			return NONE;
		if (in->entries[entry - 1].method == method)
			return !dex || in->entries[entry - 1].dex == dex ? entry - 1 : NONE;
	}
	return NONE;
}

/* Returns the next character of package.Class.method, from a class's descriptor and a method's name. 0: the end. */
static char next_character(const char **class, const char **name)
{
	char c = **class;

	if (c) {
		++*class;
		return c == '/' || c == ';' ? '.' : c;
	}
	c = **name;
	if (c)
		++*name;
	return c;
}

static int begins(const struct name *method, const varid_u8 *prefix)
{
	const char *class = method->descriptor + (method->descriptor[0] == 'L');
	const char *name = method->method;

	while (*prefix)
		if (next_character(&class, &name) != (char)*prefix++)
			return 0;
	return 1;
}

/* Returns the flags that the filter gives a method. A method without a name is not filtered. */
static varid_u32 judge(const struct name *method)
{
	varid_u32 i;

	if (!state.order.filter_count || !method->descriptor || !method->method)
		return 0;
	for (i = 0; i < state.order.filter_count; i++)
		if (begins(method, state.order.filters[i].prefix))
			return 0;
	return VARID_CALL_LEFT_OUT;
}

/* Finds a free slot, or that of a retired method. */
static varid_u32 free_slot(const struct table *in, varid_u64 pointer)
{
	varid_u32 slot = first_slot(pointer), i;

	for (i = 0; i < PROBES; i++, slot++) {
		varid_u32 entry = in->slots[slot & (SLOTS - 1)];

		if (!entry || in->entries[entry - 1].method == VARID_RETIRED)
			return slot & (SLOTS - 1);
	}
	return NONE;
}

static varid_u32 insert(struct table *in, varid_u64 pointer, varid_u64 dex)
{
	struct dim_method method = { 0, 0, VARID_NO_INDEX, 0, 0 };
	varid_u32 entry = in->count, slot;
	struct varid_call *call;

	slot = free_slot(in, pointer);
	if (slot == NONE || entry >= VARID_MAX_CALLS)
		return NONE;
	state.describe(pointer, &method);
	in->names[entry].descriptor = method.descriptor;
	in->names[entry].method = method.name;
	call = &in->entries[entry];
	call->method = pointer;
	call->insns = method.insns;
	call->dex = dex ? dex : method.dex;
	call->index = method.index;
	call->flags = judge(&in->names[entry]);
	__sync_synchronize();
	in->calls->count = in->count = entry + 1;
	__sync_synchronize();
	((volatile varid_u32 *)in->slots)[slot] = entry + 1;
	return entry;
}

static void count(varid_u64 *counter)
{
#if defined(__LP64__)
	__sync_fetch_and_add(counter, 1);
#else
	varid_u32 *half = (varid_u32 *)(void *)counter;

	if (!__sync_add_and_fetch(&half[0], 1))
		__sync_fetch_and_add(&half[1], 1);
#endif
}

static int make_file(struct table *in)
{
	struct varid_calls *calls = dim_share(VARID_CALLS_NAME, CALLS_SIZE, 1, &state.file);

	if (!calls)
		return 0;
	calls->version = VARID_CALLS_VERSION;
	calls->entry_size = sizeof(struct varid_call);
	calls->capacity = VARID_MAX_CALLS;
	__sync_synchronize();
	dim_copy(calls->magic, VARID_CALLS_MAGIC, sizeof(calls->magic));
	in->calls = calls;
	in->entries = (struct varid_call *)(void *)((char *)calls + VARID_CALLS_ENTRIES);
	return 1;
}

/* Makes this the current table. */
static void show(struct table *made)
{
	struct varid_file file = { 0, CALLS_SIZE, 0, 0 };

	__sync_synchronize();
	*table_page = state.table = made;
	file.address = (unsigned long)made->calls;
	file.fd = (varid_u32)state.file.fd;
	dim_tell_file(1, &file);
}

static void make_table(void)
{
	struct table *made;

	if (table() || state.failed || dim_ended || !state.describe)
		return;
	made = dim_map(sizeof(*made), DIM_PROT_READ | DIM_PROT_WRITE,
		       DIM_MAP_PRIVATE | DIM_MAP_ANONYMOUS | DIM_MAP_NORESERVE, -1);
	if (made && make_file(made)) {
		show(made);
		return;
	}
	state.failed = 1;
	if (made)
		dim_unmap(made, sizeof(*made));
}

struct varid_calls *dim_table(void)
{
	struct table *in = table();

	return in ? in->calls : 0;
}

struct varid_calls *dim_table_make(void)
{
	dim_take(&state.inserting);
	make_table();
	__sync_lock_release(&state.inserting);
	return dim_table();
}

void dim_table_init(dim_describe *describe)
{
	struct table **page = dim_map(PAGE, DIM_PROT_READ | DIM_PROT_WRITE, DIM_MAP_PRIVATE | DIM_MAP_ANONYMOUS, -1);

	if (page) {
		dim_syscall(SYS_MADVISE, (long)page, PAGE, DIM_MADV_WIPEONFORK, 0, 0, 0);
		table_page = page;
	}
	state.describe = describe;
}

void dim_table_fork(int wanted)
{
	struct table *in = state.table;
	struct varid_calls *calls;
	struct varid_call *entries;
	varid_u32 i;

	state.inserting = state.failed = 0;
	state.order.filter_count = 0;
	if (!in)
		return;
	calls = in->calls;
	entries = in->entries;
	dim_close(&state.file);
	if (wanted && make_file(in)) {
		/* Shadow stacks contain remapped addresses, which must stay valid. */
		for (i = 0; i < in->count; i++) {
			in->entries[i].method = entries[i].method;
			in->entries[i].insns = entries[i].insns;
			in->entries[i].dex = entries[i].dex;
			in->entries[i].index = entries[i].index;
		}
		in->calls->count = in->count;
		show(in);
	} else {
		state.failed = 1;
		*table_page = state.table = 0;
		dim_unmap(in, sizeof(*in));
	}
	dim_unmap(calls, CALLS_SIZE);
}

/* Not inlined, so that the look-up of a known method saves no registers. */
static __attribute__((noinline)) varid_u32 remap_new(varid_u64 method, varid_u64 dex)
{
	struct table *in;
	varid_u32 entry = NONE;

	dim_after_fork();
	dim_take(&state.inserting);
	make_table();
	in = table();
	if (in) {
		entry = find(in, method, 0);
		/* The VM has reused the pointer for another method and has not reported it yet. */
		if (entry != NONE && dex && in->entries[entry].dex != dex) {
			in->entries[entry].method = VARID_RETIRED;
			entry = NONE;
		}
		if (entry == NONE && !dim_ended)
			entry = insert(in, method, dex);
	}
	__sync_lock_release(&state.inserting);
	return entry == NONE ? 0 : entry + VARID_REMAP_FIRST;
}

DIM_INLINE varid_u32 remap(varid_u64 method, varid_u64 dex)
{
	struct table *in = table();
	varid_u32 entry = in ? find(in, method, dex) : NONE;

	return entry == NONE ? remap_new(method, dex) : entry + VARID_REMAP_FIRST;
}

varid_u32 dim_remap(varid_u64 method)
{
	return remap(method, 0);
}

void dim_call(enum dim_event event, varid_u64 method, varid_u64 dex)
{
	varid_u32 remapped;
	struct table *in;
	struct varid_call *call;

	if (!dim_calls_on())
		return;
	remapped = remap(method, dex);
	in = table();
	if (!in || !dim_calls_on()) /* at a forked child's first call */
		return;
	if (!remapped) {
		count(&in->calls->uncounted);
		return;
	}
	call = &in->entries[remapped - VARID_REMAP_FIRST];
	if (call->flags & VARID_CALL_LEFT_OUT)
		return;
	count(event == DIM_INVOKE ? &call->invokes : event == DIM_RETURN ? &call->returns : &call->unwinds);
	if (dim_log_on && !dim_log_line(event, call->insns ? call->insns : call->method))
		count(&in->calls->unlogged);
}

/* Entries keep their places. Their counts are reset, or the new filter is applied to them. Retired methods are skipped. */
void dim_table_renew(const struct varid_control *order, int from_zero)
{
	struct table *in = table();
	varid_u32 i;

	dim_take(&state.inserting);
	dim_copy(&state.order, order, sizeof(*order));
	for (i = 0; i < in->count; i++) {
		struct varid_call *call = &in->entries[i];

		if (from_zero)
			call->invokes = call->returns = call->unwinds = 0;
		if (call->method != VARID_RETIRED)
			call->flags = judge(&in->names[i]);
	}
	if (from_zero)
		in->calls->uncounted = in->calls->unlogged = in->calls->refused = 0;
	in->calls->session = order->session;
	__sync_lock_release(&state.inserting);
}

/* Returns the process's own table, if it has one by now. */
static struct table *own_table(void)
{
	if (!state.table)
		return 0;
	dim_after_fork();
	return table();
}

/* No method has the pointer that marks retired methods. */
void dim_calls_method_gone(varid_u64 method)
{
	struct table *in = method && method != VARID_RETIRED ? own_table() : 0;
	varid_u32 entry;

	if (!in)
		return;
	dim_take(&state.inserting);
	entry = find(in, method, 0);
	if (entry != NONE)
		in->entries[entry].method = VARID_RETIRED;
	__sync_lock_release(&state.inserting);
}

void dim_calls_dex_gone(varid_u64 dex)
{
	struct table *in = dex ? own_table() : 0;
	varid_u32 i;

	if (!in)
		return;
	dim_take(&state.inserting);
	for (i = 0; i < in->count; i++)
		if (in->entries[i].dex == dex)
			in->entries[i].method = VARID_RETIRED;
	__sync_lock_release(&state.inserting);
}
