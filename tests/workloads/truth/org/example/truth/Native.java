package org.example.truth;

/** Managed and native code that call each other: bounce (C) calls back, which calls bounce until no level is left. */
final class Native {
    static native int bounce(int levels, int x);

    static int back(int levels, int x) {
        x = Recursion.spin(x + 1, 50);
        return levels == 0 ? x : bounce(levels - 1, x);
    }
}
