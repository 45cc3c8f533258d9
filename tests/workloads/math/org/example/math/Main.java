package org.example.math;

/** 0xBench's Math: SciMark's five kernels and Linpack. A round is a few million bytecodes of each. */
public class Main {
    static final int SEED = 101010;

    public static long run(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + fft(1);
            sum = sum * 31L + sor(1);
            sum = sum * 31L + monteCarlo(1);
            sum = sum * 31L + sparse(1);
            sum = sum * 31L + lu(1);
            sum = sum * 31L + linpack(1);
        }
        return sum;
    }

    public static long fft(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            long result = 0L;
            double[] data = new Random(SEED).doubles(2048);
            for (int pair = 0; pair < 6; pair++) {
                FFT.transform(data);
                // The sines are the C library's: a last bit may differ between machines.
                result = result * 31L + (long) (data[pair * 10 + 2] * 1.0e6);
                FFT.inverse(data);
            }
            for (int k = 0; k < 2048; k++) {
                result = result * 31L + (long) (data[k] * 1.0e6);
            }
            sum = sum * 31L + result;
        }
        return sum;
    }

    public static long sor(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            double[][] grid = new Random(SEED).matrix(100);
            SOR.execute(1.25, grid, 12);
            sum = sum * 31L + Checksum.of(grid);
        }
        return sum;
    }

    public static long monteCarlo(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Checksum.of(MonteCarlo.integrate(20000));
        }
        return sum;
    }

    public static long sparse(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + SparseCompRow.measure(1000, 5000, 60);
        }
        return sum;
    }

    public static long lu(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            double[][] matrix = new Random(SEED).matrix(100);
            double[] b = new Random(SEED + 1).doubles(100);
            int[] pivot = new int[100];
            LU.factor(matrix, pivot);
            LU.solve(matrix, pivot, b);
            sum = sum * 31L + Checksum.of(matrix) * 31L + Checksum.of(b);
        }
        return sum;
    }

    public static long linpack(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Linpack.run_benchmark(100);
        }
        return sum;
    }
}
