package org.example.corner;

/** Calls whose targets become more as classes are loaded, in loops that run meanwhile. */
final class Gauges {
    static int round(int i) {
        Gauge gauge = made(i);
        int sum = 0;
        for (int k = 0; k < 1000; k++) {
            sum = sum * 31 + gauge.twice(k % 5);
            if (k == 500) {
                gauge = made(i + 1);
            }
        }
        return sum;
    }

    /** From the tenth, the twentieth and the thirtieth on also one of a further class. */
    static Gauge made(int i) {
        if (i >= 10 && i % 4 == 1) {
            return new FineGauge();
        }
        if (i >= 20 && i % 4 == 2) {
            return new CoarseGauge();
        }
        if (i >= 30 && i % 4 == 3) {
            return new OddGauge();
        }
        return new Gauge();
    }
}
