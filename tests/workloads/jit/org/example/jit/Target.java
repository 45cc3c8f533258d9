package org.example.jit;

/** What is overridden. */
class Target {
    int of(int x) {
        return x * 69069 + 1;
    }
}
