package kernels;

/** Quicksort: an array of int, recursion. */
public final class Quicksort {
    private Quicksort() {}

    private static void sort(int[] a, int from, int to) {
        if (from >= to) return;
        int pivot = a[(from + to) >>> 1], i = from, j = to;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) {
                int swapped = a[i];
                a[i++] = a[j];
                a[j--] = swapped;
            }
        }
        sort(a, from, j);
        sort(a, i, to);
    }

    public static int run(int n) {
        int[] a = new int[n];
        for (int i = 0, value = 12345; i < n; i++, value = value * 1103515245 + 12345) a[i] = value >>> 8;
        sort(a, 0, n - 1);
        return a[n / 2];
    }
}
