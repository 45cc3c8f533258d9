package org.example.vm;

/** A list whose head moves on: every cell becomes garbage when a window has passed over it. */
final class Chain {
    private Chain next;
    private final int[] payload;

    Chain(int size, int value) {
        payload = new int[size];
        payload[size - 1] = value;
    }

    int last() {
        return payload[payload.length - 1];
    }

    static long slide(int cells, int window) {
        Chain head = new Chain(1, 1);
        Chain tail = head;
        long sum = 0L;
        for (int i = 1; i < cells; i++) {
            Chain cell = new Chain(1 + i % 50, i);
            tail.next = cell;
            tail = cell;
            if (i >= window) {
                sum += head.last();
                head = head.next;
            }
        }
        return sum;
    }
}
