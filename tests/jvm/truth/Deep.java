package org.example.truth;

/** A thousand calls, and all of the work in the last one and on the way to it. */
public final class Deep {
    static final int DEPTH = 1000;
    private static final int ITERATIONS = 60_000;

    private Deep() {}

    /** Prints a sum that each round changes. */
    public static void main(String[] arguments) {
        long sum = 0;
        for (int round = Integer.parseInt(arguments[0]); round > 0; round--) {
            sum = down(1, sum);
        }
        System.out.println(sum);
    }

    /** The depth-th call. */
    static long down(int depth, long sum) {
        return depth == DEPTH ? work(sum) : down(depth + 1, sum + depth) + 1;
    }

    static long work(long sum) {
        long mixed = sum;
        for (int i = 0; i < ITERATIONS; i++) {
            mixed = mixed * 31 + i;
        }
        return mixed;
    }
}
