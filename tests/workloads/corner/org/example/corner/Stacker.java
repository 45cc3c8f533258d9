package org.example.corner;

/** Allocates on each level of its stack. */
final class Stacker extends Runner {
    Stacker(int size) {
        super("stacker", size);
    }

    public void run() {
        for (int i = 0; i < 40; i++) {
            found = found + heap(size, null);
        }
    }

    static int heap(int left, Crate below) {
        Crate crate = new Crate(below, left + 1);
        if (left == 0) {
            return crate.weight();
        }
        return heap(left - 1, crate) + crate.load[left / 2];
    }
}
