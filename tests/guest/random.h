// Numbers that look random and are the same in each run.
#pragma once

#include <stdint.h>

static uint32_t random_state = 0x2545f491;

static inline uint32_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}
