package org.example.alike;

final class Screw {
    static int turn(int x, int times) {
        for (int n = times; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }
}
