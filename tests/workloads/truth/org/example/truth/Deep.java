package org.example.truth;

/** Thrown at the bottom of a deep stack. */
final class Deep extends RuntimeException {
    final int depth;

    Deep(int depth) {
        super();
        this.depth = depth;
    }
}
