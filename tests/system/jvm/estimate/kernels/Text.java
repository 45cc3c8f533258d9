package kernels;

/** Edit distances of words: arrays of char and int, static calls of a few instructions. */
public final class Text {
    private Text() {}

    private static int least(int a, int b) {
        return a < b ? a : b;
    }

    private static int distance(char[] a, char[] b) {
        int[] before = new int[b.length + 1], now = new int[b.length + 1];
        for (int j = 0; j <= b.length; j++) before[j] = j;
        for (int i = 1; i <= a.length; i++) {
            now[0] = i;
            for (int j = 1; j <= b.length; j++) {
                int changed = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
                now[j] = least(changed, least(before[j], now[j - 1]) + 1);
            }
            int[] swapped = before;
            before = now;
            now = swapped;
        }
        return before[b.length];
    }

    public static int run(int n) {
        char[] a = { 'i', 'n', 't', 'e', 'r', 'p', 'r', 'e', 't', 'e', 'r' }, b = { 'p', 'r', 'e', 's', 'e', 'n', 't' };
        int sum = 0;
        for (int i = 0; i < n / 8; i++) {
            a[i % a.length] = (char) ('a' + i % 26);
            sum += distance(a, b);
        }
        return sum;
    }
}
