package kernels;

/** Fibonacci numbers by recursion: static calls. */
public final class Fib {
    private Fib() {}

    public static int run(int n) {
        return n < 2 ? n : run(n - 1) + run(n - 2);
    }
}
