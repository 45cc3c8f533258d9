// A tokenizer as a state machine over a text.
#include <stdint.h>

enum state { START, WORD, NUMBER, FRACTION, STRING, ESCAPE, COMMENT, OPERATOR };

static const char text[] =
    "while (count1 < 3.1415) { print(\"a \\\"word\\\"\", count1 + 42); # a comment\n"
    "  count1 += 0.5; names[7] = \"x\"; } return -1 * total % 100;\n"
    "# another one, longer than the first\n"
    "value = left<<2 | right>>3;\n";

static enum state next(enum state state, char c)
{
    switch (state) {
    case STRING: return c == '\\' ? ESCAPE : c == '"' ? START : STRING;
    case ESCAPE: return STRING;
    case COMMENT: return c == '\n' ? START : COMMENT;
    case NUMBER:
        if (c == '.')
            return FRACTION;
        /* fall through */
    case FRACTION:
        if (c >= '0' && c <= '9')
            return state;
        break;
    case WORD:
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_')
            return WORD;
        break;
    default: break;
    }
    if (c >= 'a' && c <= 'z')
        return WORD;
    if (c >= '0' && c <= '9')
        return NUMBER;
    switch (c) {
    case '"': return STRING;
    case '#': return COMMENT;
    case ' ':
    case '\n': return START;
    default: return OPERATOR;
    }
}

int main(void)
{
    static uint32_t counts[8];
    uint32_t sum = 0;
    for (int round = 0; round < 60; round++) {
        enum state state = START;
        for (const char *c = text; *c; c++) {
            enum state then = next(state, *c);
            if (then != state)
                counts[then]++;
            state = then;
        }
    }
    for (int i = 0; i < 8; i++)
        sum = sum * 101 + counts[i];
    return (int)sum;
}
