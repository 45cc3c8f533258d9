package org.example.vm;

/** Large arrays of doubles, of which a few are kept: the large object space fills and is swept. */
final class LargeArrays {
    static final int KEPT = 8;
    static final int LENGTH = 32768;

    static double[] allocate(int seed) {
        double[] array = new double[LENGTH];
        for (int i = seed % 64; i < LENGTH; i += 64) {
            array[i] = seed + 1.0 / (i + 1);
        }
        return array;
    }

    static double sum(double[] array) {
        double sum = 0.0;
        for (int i = 0; i < LENGTH; i += 16) {
            sum += array[i];
        }
        return sum;
    }

    static long run(int count) {
        double[][] kept = new double[KEPT][];
        double total = 0.0;
        for (int i = 0; i < count; i++) {
            double[] array = allocate(i);
            int slot = i * 5 % KEPT;
            if (kept[slot] != null) {
                total += sum(kept[slot]);
            }
            kept[slot] = array;
        }
        return Double.doubleToRawLongBits(total);
    }
}
