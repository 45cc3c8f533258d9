package org.example.truth;

import java.lang.reflect.Method;

/** Many calls, of which every third is one of the VM's: a native method that calls the next one. All of the work is in the last one. */
public final class Reflected {
    static final int DEPTH = 150;
    private static final int ITERATIONS = 60_000;
    private static final Method DOWN;

    static {
        // Otherwise methods that are called often have generated code in Java, which calls them.
        System.setProperty("sun.reflect.inflationThreshold", String.valueOf(Integer.MAX_VALUE));
        try {
            DOWN = Reflected.class.getDeclaredMethod("down", int.class, long.class);
        } catch (ReflectiveOperationException missing) {
            throw new ExceptionInInitializerError(missing);
        }
    }

    private Reflected() {}

    /** Prints a sum that each round changes. */
    public static void main(String[] arguments) throws ReflectiveOperationException {
        long sum = 0;
        for (int round = Integer.parseInt(arguments[0]); round > 0; round--) {
            sum = down(1, sum);
        }
        System.out.println(sum);
    }

    /** The depth-th call. */
    static long down(int depth, long sum) throws ReflectiveOperationException {
        if (depth == DEPTH) {
            return work(sum);
        }
        if (depth % 3 == 0) {
            return (Long) DOWN.invoke(null, depth + 1, sum + depth) + 1;
        }
        return down(depth + 1, sum + depth) + 1;
    }

    static long work(long sum) {
        long mixed = sum;
        for (int i = 0; i < ITERATIONS; i++) {
            mixed = mixed * 31 + i;
        }
        return mixed;
    }
}
