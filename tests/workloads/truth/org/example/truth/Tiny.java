package org.example.truth;

/** Methods that do next to nothing. */
final class Tiny {
    private int value;

    int get() {
        return value;
    }

    void set(int value) {
        this.value = value;
    }

    static int add(int a, int b) {
        return a + b;
    }

    static int twice(int a) {
        return a << 1;
    }
}
