package org.example.math;

/** Pi from the share of random points that lie in a quarter of a circle. */
public class MonteCarlo {
    static final int SEED = 113;

    public static double integrate(int samples) {
        Random random = new Random(SEED);
        int under_curve = 0;
        for (int count = 0; count < samples; count++) {
            double x = random.nextDouble();
            double y = random.nextDouble();
            if (x * x + y * y <= 1.0) {
                under_curve++;
            }
        }
        return (double) under_curve / samples * 4.0;
    }
}
