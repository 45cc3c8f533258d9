package org.example.math;

/** LU factorisation of a dense matrix with partial pivoting, in place. */
public class LU {
    public static int factor(double[][] a, int[] pivot) {
        int n = a.length;
        for (int j = 0; j < n; j++) {
            int jp = j;
            double t = magnitude(a[j][j]);
            for (int i = j + 1; i < n; i++) {
                double ab = magnitude(a[i][j]);
                if (ab > t) {
                    jp = i;
                    t = ab;
                }
            }
            pivot[j] = jp;
            if (a[jp][j] == 0.0) {
                return 1;
            }
            if (jp != j) {
                double[] swapped = a[j];
                a[j] = a[jp];
                a[jp] = swapped;
            }
            double reciprocal = 1.0 / a[j][j];
            for (int k = j + 1; k < n; k++) {
                a[k][j] *= reciprocal;
            }
            for (int ii = j + 1; ii < n; ii++) {
                double[] aii = a[ii];
                double[] aj = a[j];
                double aiij = aii[j];
                for (int jj = j + 1; jj < n; jj++) {
                    aii[jj] -= aiij * aj[jj];
                }
            }
        }
        return 0;
    }

    public static void solve(double[][] lu, int[] pivot, double[] b) {
        int n = lu.length;
        int first = 0;
        for (int i = 0; i < n; i++) {
            int ip = pivot[i];
            double sum = b[ip];
            b[ip] = b[i];
            for (int j = first; j < i; j++) {
                sum -= lu[i][j] * b[j];
            }
            b[i] = sum;
        }
        for (int i = n - 1; i >= 0; i--) {
            double sum = b[i];
            for (int j = i + 1; j < n; j++) {
                sum -= lu[i][j] * b[j];
            }
            b[i] = sum / lu[i][i];
        }
    }

    private static double magnitude(double value) {
        return value < 0.0 ? -value : value;
    }
}
