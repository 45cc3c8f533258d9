package org.example.programs;

/** Repeats a piece of work for a number of seconds. */
final class Deadline {
    /** Work that may fail. */
    interface Work {
        /** Does the work once more. */
        void run(int round) throws Exception;
    }

    private Deadline() {}

    /**
     * Repeats the work for the seconds that the first argument names. Prints how often it was done, in all and in the second half, in which
     * the code is compiled.
     */
    static void repeat(String[] arguments, Work work) throws Exception {
        long half = Long.parseLong(arguments[0]) * 500_000_000L;
        long start = System.nanoTime();
        int rounds = 0;
        int inSecondHalf = 0;
        while (System.nanoTime() - start < 2 * half) {
            work.run(rounds++);
            if (System.nanoTime() - start >= half) {
                inSecondHalf++;
            }
        }
        System.out.println(rounds + " rounds, in the second half " + inSecondHalf);
    }
}
