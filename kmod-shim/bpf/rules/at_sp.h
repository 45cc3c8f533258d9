/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* AT_SP: walks complete frames, several at once, and finds the state of the interpreter's code that leads to the leaf's frame. */
#ifndef VARID_BPF_RULES_AT_SP_H
#define VARID_BPF_RULES_AT_SP_H

#include "../copies.h"

#define SAVED_AT_ONCE 16   // frames of an AT_SP rule, whose steps are shorter
#define STATE_SLOTS 16     // builds of VMs with an AT_SP rule that can be profiled at once

// A saved word of the caller's, and the bits above all addresses.
#define SAVED(window, offset) (*(const __u64 *)((window) + VARID_SAVES_OFFSET(offset)))
#define TAGS (~VARID_ADDRESS(~0ull))

// Walks complete frames of an AT_SP rule whose callers follow the same rule, from the copy. The result is that of varid_walk_step,
// which handles the rare cases: 32-bit words, addresses with tags. A separate function: the verifier checks it once.
__noinline int saved_steps(struct scratch *s, __u32 limit)
{
	const struct varid_rule *rule;
	struct varid_packed_frame *out;
	__u64 sp, frame, pc, start, whole, code_start, code_size, pos, to_word, to_saves;
	__u32 taken = 0, below, saved_pc, saved_frame, saved_return;

	if (!s || s->layout.quick_rule == VARID_NO_RULE)
		return 0;
	rule = &s->layout.rules[s->layout.quick_rule & (VARID_MAX_RULES - 1)];
	sp = s->walk.quick;
	frame = s->walk.frame;
	pc = s->walk.reg_pc;
	pos = s->pos;
	whole = s->copy_len;
	if (!frame || s->walk.cfa || s->layout.word != 8 || rule->kind != VARID_RULE_AT_SP ||
	    rule->cfa_word == VARID_NO_WORD || whole < VARID_SAVES_WINDOW ||
	    s->record.frames + SAVED_AT_ONCE > limit || pos > OUT_MAX - SAVED_AT_ONCE * sizeof(*out))
		return 0;
	whole -= VARID_SAVES_WINDOW - 1;
	below = varid_saved_below(rule);
	saved_pc = below - rule->saved_pc;
	saved_frame = below - rule->saved_frame;
	saved_return = below - rule->saved_return;
	// Offsets in the copy: from the register that leads to the CFA to that word, and from the word's value to the saves.
	start = s->copy_start;
	to_word = rule->cfa_word - start;
	to_saves = rule->cfa_bias - below - start;
	code_start = rule->code_start;
	code_size = rule->code_end - code_start;
	// The verifier must see the bound on the register that is added.
	asm volatile("" : "+r"(pos));
	out = (struct varid_packed_frame *)(s->out + (pos & 0xffff));
	asm volatile("" : "+r"(out));
#pragma unroll
	for (int i = 0; i < SAVED_AT_ONCE; i++) {
		__u64 offset = frame + to_word, cfa, returns, caller_frame, caller_pc;
		const __u8 *window;

		if (offset >= whole)
			break;
		offset = *(const __u64 *)(s->copy + (offset & (COPY_MAX - 1))) + to_saves;
		if (offset >= whole)
			break;
		cfa = offset + start + below;
		window = s->copy + (offset & (COPY_MAX - 1));
		returns = SAVED(window, saved_return);
		caller_frame = SAVED(window, saved_frame);
		caller_pc = SAVED(window, saved_pc);
		// The return address follows a call.
		if (cfa <= sp || !SAVED(window, below) || returns - code_start - 1 >= code_size || !caller_frame ||
		    !caller_pc || (caller_frame | caller_pc) & TAGS)
			break;
		out[i].addr = sp;
		out[i].what = pc;
		sp = cfa;
		frame = caller_frame;
		pc = caller_pc;
		taken++;
	}
	if (!taken)
		return 0;
	if (!s->reach)
		s->reach = s->walk.quick;
	s->walk.quick = sp;
	s->walk.frame = frame;
	s->walk.reg_pc = pc;
	if (s->seen_end < sp + sizeof(__u64))
		s->seen_end = sp + sizeof(__u64);
	s->record.frames += taken;
	s->pos = pos + taken * sizeof(*out);
	return taken == SAVED_AT_ONCE;
}

// The states of the code of AT_SP rules, one slot for each build of a VM.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STATE_SLOTS);
	__type(key, __u32);
	__type(value, struct varid_states);
} states SEC(".maps");

// Sets the state of a slot that contains the instruction ip, in bytes from the start of the code, if there is one. A separate
// function: the verifier checks each iteration of the search once, and not once for each path to it.
__noinline int find_state(struct scratch *s, __u32 slot, __u32 ip)
{
	const struct varid_states *of;
	__u32 at = 0;

	if (!s)
		return 0;
	of = bpf_map_lookup_elem(&states, &slot);
	if (!of || !of->count)
		return 0;
#pragma unroll
	for (__u32 half = VARID_MAX_STATES / 2; half; half /= 2) {
		const __u32 next = (at + half) & (VARID_MAX_STATES - 1);

		if (next < of->count && of->states[next].start <= ip)
			at = next;
	}
	if (of->states[at & (VARID_MAX_STATES - 1)].start <= ip)
		s->state = of->states[at & (VARID_MAX_STATES - 1)];
	return 0;
}

// Fills in the registers that lead to the leaf's frame.
static __always_inline void at_sp_leaf(const struct scratch *s, struct varid_leaf *leaf)
{
	const struct varid_rule *quick = &s->layout.rules[s->layout.quick_rule & (VARID_MAX_RULES - 1)];

	leaf->quick_frame = s->record.regs[quick->reg_frame & (VARID_REGS - 1)];
	leaf->quick_pc = s->record.regs[quick->reg_pc & (VARID_REGS - 1)];
	leaf->link = s->record.regs[REG_LINK(s->record.flags)];
	if (s->state.flags) {
		leaf->state = s->state.flags;
		leaf->state_reg = s->record.regs[s->state.reg & (VARID_REGS - 1)];
		leaf->cfa_word = s->state.cfa_word;
		leaf->cfa_bias = s->state.cfa_bias;
	}
}

#endif
