package org.example.corner;

/** What a profiler easily gets wrong: where threads begin, which of equal methods runs, what a signal or an exception interrupts, how deep it is. */
final class Main {
    /** All of it once a round. */
    static long run(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Threads.round(i);
            sum = sum * 31L + Failures.round(i);
            sum = sum * 31L + Nulls.round(i);
            sum = sum * 31L + Depth.round(i);
            sum = sum * 31L + Gauges.round(i);
        }
        return sum;
    }

    static long threads(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Threads.round(i);
        }
        return sum;
    }

    static long constructors(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Failures.round(i);
        }
        return sum;
    }

    static long nulls(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Nulls.round(i);
        }
        return sum;
    }

    static long depth(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Depth.round(i);
        }
        return sum;
    }

    static long hierarchy(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Gauges.round(i);
        }
        return sum;
    }
}
