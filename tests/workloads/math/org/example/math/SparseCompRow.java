package org.example.math;

/** A sparse matrix in compressed rows times a vector. */
public class SparseCompRow {
    public static void matmult(double[] y, double[] val, int[] row, int[] col, double[] x, int iterations) {
        int rows = row.length - 1;
        for (int p = 0; p < iterations; p++) {
            for (int r = 0; r < rows; r++) {
                double sum = 0.0;
                int end = row[r + 1];
                for (int i = row[r]; i < end; i++) {
                    sum += x[col[i]] * val[i];
                }
                y[r] = sum;
            }
        }
    }

    static long measure(int n, int nz, int iterations) {
        Random random = new Random(Main.SEED);
        double[] x = random.doubles(n);
        double[] y = new double[n];
        int nr = nz / n;
        double[] val = random.doubles(nr * n);
        int[] col = new int[nr * n];
        int[] row = new int[n + 1];
        for (int r = 0; r < n; r++) {
            int rowr = row[r];
            row[r + 1] = rowr + nr;
            int step = r / nr;
            if (step < 1) {
                step = 1;
            }
            for (int i = 0; i < nr; i++) {
                col[rowr + i] = i * step;
            }
        }
        matmult(y, val, row, col, x, iterations);
        return Checksum.of(y);
    }
}
