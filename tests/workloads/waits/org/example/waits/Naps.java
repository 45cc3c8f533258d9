package org.example.waits;

/** A time. */
final class Naps {
    static int nap20() {
        return Native.sleep(20);
    }
}
