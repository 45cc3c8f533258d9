// Products of integer matrices, and a transposition.
#include "../random.h"

enum { N = 20 };

static int32_t a[N][N], b[N][N], c[N][N];

static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int32_t sum = 0;
            for (int k = 0; k < N; k++)
                sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (int32_t)random_word() >> 24;
            b[i][j] = (int32_t)random_word() >> 24;
        }
    uint32_t sum = 0;
    for (int round = 0; round < 4; round++) {
        multiply();
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                a[i][j] = b[j][i];
                b[i][j] = c[i][j] >> 4;
                sum = sum * 31 + (uint32_t)c[i][j];
            }
    }
    return (int)sum;
}
