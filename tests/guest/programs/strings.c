// Words of a text: lengths, comparison, reversal, search, case, numbers as text.
#include <stdint.h>

static const char text[] =
    "the quick brown fox jumps over the lazy dog while the slow green turtle walks under the busy bridge and "
    "nobody in the whole town seems to notice that the river has been rising since the morning";

static uint32_t length(const char *s)
{
    const char *end = s;
    while (*end)
        end++;
    return (uint32_t)(end - s);
}

static const char *search(const char *in, const char *what)
{
    for (; *in; in++) {
        const char *a = in, *b = what;
        while (*b && *a == *b)
            a++, b++;
        if (!*b)
            return in;
    }
    return 0;
}

static void reverse(char *s, uint32_t size)
{
    for (uint32_t i = 0; i < size / 2; i++) {
        char held = s[i];
        s[i] = s[size - 1 - i];
        s[size - 1 - i] = held;
    }
}

static uint32_t decimal(char *out, uint32_t value)
{
    uint32_t digits = 0;
    do {
        out[digits++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    reverse(out, digits);
    return digits;
}

int main(void)
{
    static char copy[sizeof text], number[12];
    static const char *const wanted[] = {"turtle", "rising", "the", "nowhere", "bridge and"};
    uint32_t sum = 0;
    for (uint32_t round = 0; round < 15; round++) {
        uint32_t size = length(text);
        for (uint32_t i = 0; i <= size; i++)
            copy[i] = text[i] >= 'a' && text[i] <= 'z' && (i + round) % 3 == 0 ? (char)(text[i] - 32) : text[i];
        reverse(copy, size);
        for (uint32_t i = 0; i < 5; i++) {
            const char *found = search(text, wanted[i]);
            sum = sum * 31 + (found ? (uint32_t)(found - text) : 999);
        }
        uint32_t digits = decimal(number, sum);
        for (uint32_t i = 0; i < digits; i++)
            sum += (uint32_t)number[i] << i;
        for (uint32_t i = 0; i < size; i++)
            sum = sum * 3 + (uint8_t)copy[i];
    }
    return (int)sum;
}
