package org.example.math;

/** The lagged Fibonacci generator of SciMark (x[n] = x[n-17] - x[n-5] mod 2^31 - 1), seeded by a congruential one. */
public class Random {
    static final int M1 = 0x7fffffff;
    static final int M2 = 65536;
    static final double DM1 = 4.656612875245797e-10;

    private int[] m;
    private int i;
    private int j;

    public Random(int seed) {
        initialize(seed);
    }

    private void initialize(int seed) {
        m = new int[17];
        int jseed = seed < 0 ? -seed : seed;
        if (jseed % 2 == 0) {
            jseed--;
        }
        int k0 = 9069 % M2;
        int k1 = 9069 / M2;
        int j0 = jseed % M2;
        int j1 = jseed / M2;
        for (int each = 0; each < 17; each++) {
            jseed = j0 * k0;
            j1 = (jseed / M2 + j0 * k1 + j1 * k0) % (M2 / 2);
            j0 = jseed % M2;
            m[each] = j0 + M2 * j1;
        }
        i = 4;
        j = 16;
    }

    public final double nextDouble() {
        synchronized (this) {
            int k = m[i] - m[j];
            if (k < 0) {
                k += M1;
            }
            m[j] = k;
            i = i == 0 ? 16 : i - 1;
            j = j == 0 ? 16 : j - 1;
            return DM1 * k;
        }
    }

    final double[] doubles(int length) {
        double[] values = new double[length];
        for (int k = 0; k < length; k++) {
            values[k] = nextDouble();
        }
        return values;
    }

    final double[][] matrix(int size) {
        double[][] rows = new double[size][];
        for (int k = 0; k < size; k++) {
            rows[k] = doubles(size);
        }
        return rows;
    }
}
