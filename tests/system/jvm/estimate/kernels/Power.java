package kernels;

/** Powers modulo a prime: multiplications and remainders of long. */
public final class Power {
    private Power() {}

    private static long power(long base, int exponent, long modulus) {
        long result = 1;
        while (exponent > 0) {
            if ((exponent & 1) == 1) result = result * base % modulus;
            base = base * base % modulus;
            exponent >>= 1;
        }
        return result;
    }

    public static int run(int n) {
        long sum = 0;
        for (int i = 1; i <= n; i++) sum += power(i, 65537, 1000000007L);
        return (int) (sum % 1000000007L);
    }
}
