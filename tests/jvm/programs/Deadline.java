package org.example.programs;

/** Repeats a piece of work for a number of seconds, or a number of times. */
final class Deadline {
    /** Work that may fail. */
    interface Work {
        /** Does the work once more. */
        void run(int round) throws Exception;
    }

    private Deadline() {}

    /**
     * Repeats the work as the first argument says. For a number of seconds, it prints how often the work was done, in all and in the second
     * half, in which the code is compiled. For a number of rounds, such as 60x, it prints the microseconds that each of them took.
     */
    static void repeat(String[] arguments, Work work) throws Exception {
        String amount = arguments[0];
        if (amount.endsWith("x")) {
            repeat(Integer.parseInt(amount.substring(0, amount.length() - 1)), work);
        } else {
            repeat(Long.parseLong(amount), work);
        }
    }

    private static void repeat(long seconds, Work work) throws Exception {
        long half = seconds * 500_000_000L;
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

    private static void repeat(int rounds, Work work) throws Exception {
        long[] micros = new long[rounds];
        for (int round = 0; round < rounds; round++) {
            long start = System.nanoTime();
            work.run(round);
            micros[round] = (System.nanoTime() - start) / 1000;
        }
        StringBuilder line = new StringBuilder("microseconds");
        for (long each : micros) {
            line.append(' ').append(each);
        }
        System.out.println(line);
    }
}
