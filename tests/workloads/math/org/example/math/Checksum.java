package org.example.math;

/** The bits of doubles, folded into one long. */
public final class Checksum {
    static long of(double value) {
        return Double.doubleToRawLongBits(value);
    }

    static long of(double[] values) {
        long sum = 0L;
        for (int i = 0; i < values.length; i++) {
            sum = sum * 31L + Double.doubleToRawLongBits(values[i]);
        }
        return sum;
    }

    static long of(double[][] rows) {
        long sum = 0L;
        for (int i = 0; i < rows.length; i++) {
            sum = sum * 31L + of(rows[i]);
        }
        return sum;
    }
}
