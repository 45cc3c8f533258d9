package org.example.waits;

/** A monitor in which one thread sleeps. */
final class Door {
    private int passed;

    int nap60() {
        synchronized (this) {
            return Native.sleep(60);
        }
    }

    void pass() {
        synchronized (this) {
            passed = passed + 1;
        }
    }

    int passed() {
        return passed;
    }
}
