package org.example.corner;

/** Work of a known amount. */
final class Work {
    static int stir(int times) {
        int x = times;
        for (int i = 0; i < times; i++) {
            x = x * 69069 + i;
            x = x ^ x >>> 7;
        }
        return x;
    }
}
