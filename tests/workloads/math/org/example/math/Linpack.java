package org.example.math;

/** Gaussian elimination as LINPACK does it, on columns: a[j][i] is row i of column j. */
public class Linpack {
    static long run_benchmark(int n) {
        double[][] a = new double[n][];
        for (int j = 0; j < n; j++) {
            a[j] = new double[n];
        }
        double[] b = new double[n];
        int[] ipvt = new int[n];
        double norma = matgen(a, n, b);
        int info = dgefa(a, n, ipvt);
        dgesl(a, n, ipvt, b, 0);
        long sum = Checksum.of(b);
        dgesl(a, n, ipvt, b, 1);
        sum = sum * 31L + Checksum.of(b);

        double[] x = new double[n];
        for (int i = 0; i < n; i++) {
            x[i] = b[i];
        }
        norma = matgen(a, n, b);
        for (int i = 0; i < n; i++) {
            b[i] = -b[i];
        }
        dmxpy(n, b, n, x, a);
        sum = sum * 31L + Checksum.of(b);
        sum = sum * 31L + Checksum.of(norma * epslon(1.0));
        return sum + info;
    }

    static double abs(double d) {
        return d >= 0.0 ? d : -d;
    }

    static double matgen(double[][] a, int n, double[] b) {
        int init = 1325;
        double norma = 0.0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                init = 3125 * init % 65536;
                a[j][i] = (init - 32768.0) / 16384.0;
                if (a[j][i] > norma) {
                    norma = a[j][i];
                }
            }
        }
        for (int i = 0; i < n; i++) {
            b[i] = 0.0;
        }
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < n; i++) {
                b[i] += a[j][i];
            }
        }
        return norma;
    }

    static int dgefa(double[][] a, int n, int[] ipvt) {
        int info = 0;
        int nm1 = n - 1;
        for (int k = 0; k < nm1; k++) {
            double[] col_k = a[k];
            int kp1 = k + 1;
            int l = idamax(n - k, col_k, k, 1) + k;
            ipvt[k] = l;
            if (col_k[l] == 0.0) {
                info = k;
                continue;
            }
            if (l != k) {
                double t = col_k[l];
                col_k[l] = col_k[k];
                col_k[k] = t;
            }
            dscal(n - kp1, -1.0 / col_k[k], col_k, kp1, 1);
            for (int j = kp1; j < n; j++) {
                double[] col_j = a[j];
                double t = col_j[l];
                if (l != k) {
                    col_j[l] = col_j[k];
                    col_j[k] = t;
                }
                daxpy(n - kp1, t, col_k, kp1, 1, col_j, kp1, 1);
            }
        }
        ipvt[n - 1] = n - 1;
        if (a[n - 1][n - 1] == 0.0) {
            info = n - 1;
        }
        return info;
    }

    static void dgesl(double[][] a, int n, int[] ipvt, double[] b, int job) {
        int nm1 = n - 1;
        if (job == 0) {
            for (int k = 0; k < nm1; k++) {
                int l = ipvt[k];
                double t = b[l];
                if (l != k) {
                    b[l] = b[k];
                    b[k] = t;
                }
                daxpy(n - k - 1, t, a[k], k + 1, 1, b, k + 1, 1);
            }
            for (int k = n - 1; k >= 0; k--) {
                b[k] /= a[k][k];
                daxpy(k, -b[k], a[k], 0, 1, b, 0, 1);
            }
            return;
        }
        for (int k = 0; k < n; k++) {
            double t = ddot(k, a[k], 0, 1, b, 0, 1);
            b[k] = (b[k] - t) / a[k][k];
        }
        for (int k = nm1 - 1; k >= 0; k--) {
            b[k] += ddot(n - k - 1, a[k], k + 1, 1, b, k + 1, 1);
            int l = ipvt[k];
            if (l != k) {
                double t = b[l];
                b[l] = b[k];
                b[k] = t;
            }
        }
    }

    static void daxpy(int n, double da, double[] dx, int dx_off, int incx, double[] dy, int dy_off, int incy) {
        if (n <= 0 || da == 0.0) {
            return;
        }
        if (incx != 1 || incy != 1) {
            int ix = incx < 0 ? (1 - n) * incx : 0;
            int iy = incy < 0 ? (1 - n) * incy : 0;
            for (int i = 0; i < n; i++) {
                dy[iy + dy_off] += da * dx[ix + dx_off];
                ix += incx;
                iy += incy;
            }
            return;
        }
        for (int i = 0; i < n; i++) {
            dy[i + dy_off] += da * dx[i + dx_off];
        }
    }

    static double ddot(int n, double[] dx, int dx_off, int incx, double[] dy, int dy_off, int incy) {
        double dtemp = 0.0;
        if (incx != 1 || incy != 1) {
            int ix = incx < 0 ? (1 - n) * incx : 0;
            int iy = incy < 0 ? (1 - n) * incy : 0;
            for (int i = 0; i < n; i++) {
                dtemp += dx[ix + dx_off] * dy[iy + dy_off];
                ix += incx;
                iy += incy;
            }
            return dtemp;
        }
        for (int i = 0; i < n; i++) {
            dtemp += dx[i + dx_off] * dy[i + dy_off];
        }
        return dtemp;
    }

    static void dscal(int n, double da, double[] dx, int dx_off, int incx) {
        int end = n * incx;
        for (int i = 0; i < end; i += incx) {
            dx[i + dx_off] *= da;
        }
    }

    static int idamax(int n, double[] dx, int dx_off, int incx) {
        int found = 0;
        int ix = incx;
        double dmax = abs(dx[dx_off]);
        for (int i = 1; i < n; i++) {
            double magnitude = abs(dx[ix + dx_off]);
            if (magnitude > dmax) {
                found = i;
                dmax = magnitude;
            }
            ix += incx;
        }
        return found;
    }

    static void dmxpy(int n1, double[] y, int n2, double[] x, double[][] m) {
        for (int j = 0; j < n2; j++) {
            double[] column = m[j];
            double factor = x[j];
            for (int i = 0; i < n1; i++) {
                y[i] += factor * column[i];
            }
        }
    }

    static double epslon(double x) {
        double eps = 0.0;
        double a = 4.0 / 3.0;
        while (eps == 0.0) {
            double b = a - 1.0;
            double c = b + b + b;
            eps = abs(c - 1.0);
        }
        return eps * abs(x);
    }
}
