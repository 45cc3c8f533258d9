package org.example.jit;

/** Another target of a call. */
final class Other extends Target {
    int of(int x) {
        return x * 5 + 3;
    }
}
