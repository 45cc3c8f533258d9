package org.example.truth;

/**
 * Allocates known objects in known methods. The arrays are larger than a buffer of a thread can be, so each of them is allocated outside of
 * one; the small objects fill buffers.
 */
public final class Allocations {
    private static final int BYTES = 700_000;
    private static final int LONGS = 100_000;
    private static final int ITEMS = 200_000;
    private static final int SMALL = 2_000_000;

    private static volatile Object kept;

    private Allocations() {
    }

    /** 32 bytes, with or without compressed class pointers: a header of 12 or 16 bytes, or of 8, and two longs. */
    static final class Item {
        long first = 1;
        long second = 2;
    }

    static void bytes() {
        kept = new byte[BYTES];
    }

    static void longs() {
        kept = new long[LONGS];
    }

    static void items() {
        kept = new Item[ITEMS];
    }

    static void small() {
        for (int i = 0; i < SMALL; i++) {
            kept = new Item();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        for (int round = 0; round < rounds; round++) {
            bytes();
            longs();
            longs();
            items();
        }
        small();
        // What was sampled last is read of a process that runs.
        Thread.sleep(300);
        System.out.println(kept.getClass().getSimpleName());
    }
}
