package kernels;

/** Points of the Mandelbrot set: double, comparisons. */
public final class Mandelbrot {
    private Mandelbrot() {}

    private static int escape(double x, double y) {
        double a = 0, b = 0;
        for (int i = 0; i < 40; i++) {
            double aa = a * a, bb = b * b;
            if (aa + bb > 4) return i;
            b = 2 * a * b + y;
            a = aa - bb + x;
        }
        return 40;
    }

    public static int run(int n) {
        int inside = 0;
        for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) if (escape(3.0 * i / n - 2, 2.0 * j / n - 1) == 40) inside++;
        return inside;
    }
}
