package org.example.math;

/** Successive over-relaxation of a square grid: each point moves towards the mean of its four neighbours. */
public class SOR {
    public static void execute(double omega, double[][] g, int iterations) {
        int rows = g.length;
        int columns = g[0].length;
        double omega_over_four = omega * 0.25;
        double one_minus_omega = 1.0 - omega;
        for (int p = 0; p < iterations; p++) {
            for (int i = 1; i < rows - 1; i++) {
                double[] gi = g[i];
                double[] above = g[i - 1];
                double[] below = g[i + 1];
                for (int j = 1; j < columns - 1; j++) {
                    gi[j] = omega_over_four * (above[j] + below[j] + gi[j - 1] + gi[j + 1]) + one_minus_omega * gi[j];
                }
            }
        }
    }
}
