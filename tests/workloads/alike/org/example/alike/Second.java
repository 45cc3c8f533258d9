package org.example.alike;

final class Second extends Hand {
    int move(int x, int times) {
        for (int n = times; n > 0; n--) {
            x ^= x << 7;
            x ^= x >>> 9;
            x ^= x << 8;
        }
        return x;
    }
}
