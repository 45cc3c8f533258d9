package org.example.waits;

/** What waits in the kernel. */
final class Native {
    /** Sleeps; the milliseconds. */
    static native int sleep(int milliseconds);

    /** Writes a byte into the pipe; 1. */
    static native int put();

    /** Reads a byte of the pipe; 1. */
    static native int take();
}
