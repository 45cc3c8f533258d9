package org.example.truth;

/** Works, then calls what it overrides. */
final class LongStep extends Step {
    int go(int x) {
        for (int n = 0; n < 10; n++) {
            x ^= x << 7;
            x ^= x >>> 9;
        }
        return super.go(x);
    }
}
