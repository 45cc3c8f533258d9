// A recursive descent parser that evaluates expressions.
#include <stdint.h>

static const char *at;

static int32_t expression(void);

static void skip(void)
{
    while (*at == ' ')
        at++;
}

static int32_t atom(void)
{
    skip();
    if (*at == '(') {
        at++;
        int32_t value = expression();
        skip();
        at++;
        return value;
    }
    if (*at == '-') {
        at++;
        return -atom();
    }
    int32_t value = 0;
    while (*at >= '0' && *at <= '9')
        value = value * 10 + (*at++ - '0');
    return value;
}

static int32_t term(void)
{
    int32_t value = atom();
    for (;;) {
        skip();
        int32_t right;
        switch (*at) {
        case '*':
            at++;
            value *= atom();
            break;
        case '/':
            at++;
            right = atom();
            value = right ? value / right : 0;
            break;
        case '%':
            at++;
            right = atom();
            value = right ? value % right : 0;
            break;
        default: return value;
        }
    }
}

static int32_t expression(void)
{
    int32_t value = term();
    for (;;) {
        skip();
        if (*at == '+') {
            at++;
            value += term();
        } else if (*at == '-') {
            at++;
            value -= term();
        } else {
            return value;
        }
    }
}

int main(void)
{
    static const char *const texts[] = {
        "1 + 2 * 3 - 4 / 2",
        "((17 * 31) - (4 % 3)) * (2 + 3 * (4 + 5 * (6 + 7)))",
        "-(-(-12345)) + 999999 / 7 % 1000",
        "(1+(2+(3+(4+(5+(6+(7+(8+(9+10)))))))))*1024",
        "100000 - 99999 + 3 * 3 * 3 * 3 * 3 - 12 / 5",
    };
    uint32_t sum = 0;
    for (int round = 0; round < 50; round++)
        for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
            at = texts[i];
            sum = sum * 33 + (uint32_t)expression();
        }
    return (int)sum;
}
