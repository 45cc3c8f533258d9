package kernels;

/** Primes by the sieve of Eratosthenes: an array of boolean. */
public final class Sieve {
    private Sieve() {}

    public static int run(int n) {
        boolean[] composite = new boolean[n + 1];
        int primes = 0;
        for (int i = 2; i <= n; i++) {
            if (!composite[i]) {
                primes++;
                for (int j = i + i; j <= n; j += i) composite[j] = true;
            }
        }
        return primes;
    }
}
