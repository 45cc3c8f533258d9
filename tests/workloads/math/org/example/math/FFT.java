package org.example.math;

/** A radix-2 complex FFT in place; even elements are real parts, odd ones imaginary. */
public class FFT {
    public static void transform(double[] data) {
        transform_internal(data, -1);
    }

    public static void inverse(double[] data) {
        transform_internal(data, 1);
        int length = data.length;
        double norm = 1.0 / (length / 2);
        for (int i = 0; i < length; i++) {
            data[i] *= norm;
        }
    }

    static int log2(int n) {
        int log = 0;
        for (int k = 1; k < n; k *= 2) {
            log++;
        }
        return log;
    }

    static void transform_internal(double[] data, int direction) {
        int n = data.length / 2;
        int logn = log2(n);
        bitreverse(data);
        int dual = 1;
        for (int bit = 0; bit < logn; bit++) {
            double w_real = 1.0;
            double w_imag = 0.0;
            double theta = 2.0 * direction * 3.141592653589793 / (2.0 * dual);
            double s = Math.sin(theta);
            double t = Math.sin(theta / 2.0);
            double s2 = 2.0 * t * t;
            for (int b = 0; b < n; b += 2 * dual) {
                int i = 2 * b;
                int j = 2 * (b + dual);
                double wd_real = data[j];
                double wd_imag = data[j + 1];
                data[j] = data[i] - wd_real;
                data[j + 1] = data[i + 1] - wd_imag;
                data[i] += wd_real;
                data[i + 1] += wd_imag;
            }
            for (int a = 1; a < dual; a++) {
                // The next power of the root, by the recurrence that loses least.
                double next_real = w_real - s * w_imag - s2 * w_real;
                w_imag = w_imag + s * w_real - s2 * w_imag;
                w_real = next_real;
                for (int b = 0; b < n; b += 2 * dual) {
                    int i = 2 * (b + a);
                    int j = 2 * (b + a + dual);
                    double z1_real = data[j];
                    double z1_imag = data[j + 1];
                    double wd_real = w_real * z1_real - w_imag * z1_imag;
                    double wd_imag = w_real * z1_imag + w_imag * z1_real;
                    data[j] = data[i] - wd_real;
                    data[j + 1] = data[i + 1] - wd_imag;
                    data[i] += wd_real;
                    data[i + 1] += wd_imag;
                }
            }
            dual *= 2;
        }
    }

    static void bitreverse(double[] data) {
        int n = data.length / 2;
        int j = 0;
        for (int i = 0; i < n - 1; i++) {
            int ii = i << 1;
            int jj = j << 1;
            int k = n >> 1;
            if (i < j) {
                double real = data[ii];
                double imag = data[ii + 1];
                data[ii] = data[jj];
                data[ii + 1] = data[jj + 1];
                data[jj] = real;
                data[jj + 1] = imag;
            }
            while (k <= j) {
                j -= k;
                k = k >> 1;
            }
            j += k;
        }
    }
}
