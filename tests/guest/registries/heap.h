// Memory for programs: blocks of powers of two, which are used again once they are released. All bytes are 0 at first.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { HEAP_SIZE = 4 << 20, SMALLEST = 16, CLASSES = 20 };

union heap_block {
    union heap_block *next; // of the released ones of a size
    long double alignment;
};

static union heap_block heap_memory[HEAP_SIZE / sizeof(union heap_block)];
static size_t heap_used;
static union heap_block *heap_released[CLASSES];

// The smallest size that is enough, as a power of two times SMALLEST.
static inline unsigned heap_class(size_t size)
{
    unsigned class = 0;
    while (((size_t)SMALLEST << class) < size)
        class++;
    return class;
}

// Returns null if there is no such memory.
static inline void *heap_take(size_t size)
{
    unsigned class = heap_class(size);
    if (class >= CLASSES)
        return NULL;
    union heap_block *block = heap_released[class];
    if (block) {
        heap_released[class] = block->next;
        return block;
    }
    size_t bytes = (size_t)SMALLEST << class;
    if (bytes > sizeof heap_memory - heap_used)
        return NULL;
    block = heap_memory + heap_used / sizeof *block;
    heap_used += bytes;
    return block;
}

static inline void heap_release(void *memory, size_t size)
{
    union heap_block *block = memory;
    unsigned class = heap_class(size);
    block->next = heap_released[class];
    heap_released[class] = block;
}
