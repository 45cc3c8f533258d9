// 64-bit arithmetic on a 32-bit machine: products, quotients, shifts, comparisons.
#include "../random.h"

static uint64_t random_long(void)
{
    uint64_t high = random_word();
    return high << 32 | random_word();
}

int main(void)
{
    uint64_t sum = 1;
    int64_t balance = 0;
    for (int i = 0; i < 300; i++) {
        uint64_t a = random_long(), b = random_long() >> (i % 60);
        sum = sum * 6364136223846793005u + (b ? a / b : a);
        sum ^= a << (i & 63) | b >> (i & 31);
        balance += (int64_t)a >> 8;
        balance -= (int64_t)b % 1000003;
        if ((int64_t)sum < balance)
            sum += (uint32_t)a * (uint64_t)(uint32_t)b;
    }
    sum += (uint64_t)balance;
    return (int)(sum ^ sum >> 32);
}
