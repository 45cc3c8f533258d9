package org.example.truth;

/** Methods with one and the same loop, run as often as their names say. No call and no memory access in a loop. */
final class Shares {
    static int outer10(int x, int base) {
        for (int n = base * 10; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        x = work40(x, base);
        return middle5(x, base);
    }

    static int middle5(int x, int base) {
        for (int n = base * 5; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        x = work30(x, base);
        return both10(x, base);
    }

    static int work40(int x, int base) {
        for (int n = base * 40; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }

    static int work30(int x, int base) {
        for (int n = base * 30; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }

    /** Called from two places: half of its ten percent each. */
    static int both10(int x, int base) {
        for (int n = base * 5; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }

    static int work5(int x, int base) {
        for (int n = base * 5; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }
}
