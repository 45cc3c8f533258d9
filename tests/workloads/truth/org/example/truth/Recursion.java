package org.example.truth;

/** Deep stacks: one method above itself, and two that call each other. Each level works before and after its call. */
final class Recursion {
    static int down(int depth, int x) {
        x = spin(x, 20);
        if (depth == 0) {
            return spin(x, 2000);
        }
        x = down(depth - 1, x);
        return spin(x, 20);
    }

    static int ping(int depth, int x) {
        for (int n = 0; n < 40; n++) {
            x = x * 69069 + 1;
        }
        return depth == 0 ? x : pong(depth - 1, x);
    }

    static int pong(int depth, int x) {
        for (int n = 0; n < 40; n++) {
            x = x * 69069 + 5;
        }
        return depth == 0 ? x : ping(depth - 1, x);
    }

    static int spin(int x, int times) {
        for (int n = times; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }
}
