package org.example.truth;

/** Methods with the same loop, which one to four times as many iterations run. */
public final class Shares {
    private static final int MOST_ITERATIONS = 40_000;

    private Shares() {}

    /** Rounds take different times, so that none of them keeps in step with the samples. */
    public static void main(String[] arguments) {
        long sum = 0;
        int seed = 1;
        for (int round = Integer.parseInt(arguments[0]); round > 0; round--) {
            seed = seed * 1_103_515_245 + 12_345;
            int iterations = (seed >>> 8) % MOST_ITERATIONS;
            sum = below(sum, iterations) + above(sum, iterations);
        }
        System.out.println(sum);
    }

    static long below(long sum, int iterations) {
        return one(sum, iterations) + two(sum, 2 * iterations);
    }

    static long above(long sum, int iterations) {
        return three(sum, 3 * iterations) + four(sum, 4 * iterations);
    }

    static long one(long sum, int iterations) {
        long mixed = sum;
        for (int i = 0; i < iterations; i++) {
            mixed = mixed * 31 + i;
        }
        return mixed;
    }

    static long two(long sum, int iterations) {
        long mixed = sum;
        for (int i = 0; i < iterations; i++) {
            mixed = mixed * 31 + i;
        }
        return mixed;
    }

    static long three(long sum, int iterations) {
        long mixed = sum;
        for (int i = 0; i < iterations; i++) {
            mixed = mixed * 31 + i;
        }
        return mixed;
    }

    static long four(long sum, int iterations) {
        long mixed = sum;
        for (int i = 0; i < iterations; i++) {
            mixed = mixed * 31 + i;
        }
        return mixed;
    }
}
