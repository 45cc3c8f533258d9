// The functions of the C library that compilers call on their own.
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    char *out = to;
    const char *in = from;
    while (size--)
        *out++ = *in++;
    return to;
}

void *memset(void *to, int value, size_t size)
{
    char *out = to;
    while (size--)
        *out++ = (char)value;
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    char *out = to;
    const char *in = from;
    if (out < in)
        return memcpy(to, from, size);
    while (size--)
        out[size] = in[size];
    return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *a = left, *b = right;
    for (; size--; a++, b++)
        if (*a != *b)
            return *a - *b;
    return 0;
}
