// Divisions of all sizes: greatest common divisors, powers by a modulus, digits, signed quotients.
#include "../random.h"

static uint32_t divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint32_t power(uint32_t base, uint32_t exponent, uint32_t modulus)
{
    uint32_t result = 1;
    for (base %= modulus; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = result * base % modulus;
        base = base * base % modulus;
    }
    return result;
}

int main(void)
{
    uint32_t sum = 0;
    for (int i = 0; i < 150; i++) {
        uint32_t a = random_word(), b = random_word() >> (i % 24);
        sum = sum * 31 + divisor(a, b);
        sum += power(a, b & 0xfff, 40009);
        for (uint32_t rest = a; rest; rest /= 10)
            sum = sum * 3 + rest % 10;
        int32_t left = (int32_t)a, right = (int32_t)b;
        sum += (uint32_t)(right ? left / right + left % right : left);
        sum ^= (uint32_t)(left / (i - 75 ? i - 75 : 1));
    }
    return (int)sum;
}
