package org.example.truth;

/** What is overridden. */
class Step {
    int go(int x) {
        return x * 69069 + 1;
    }
}
