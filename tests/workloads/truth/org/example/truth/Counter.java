package org.example.truth;

/** A count behind a monitor. */
final class Counter {
    private long count;

    void increments(int times) {
        for (int n = 0; n < times; n++) {
            increment(n);
        }
    }

    void increment(int by) {
        synchronized (this) {
            count += by;
        }
    }

    long count() {
        synchronized (this) {
            return count;
        }
    }
}
