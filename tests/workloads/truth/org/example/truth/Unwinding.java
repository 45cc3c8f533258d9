package org.example.truth;

/** Exceptions that unwind many frames: through methods without handlers, and caught and thrown again on the way. */
final class Unwinding {
    static int caught(int depth) {
        try {
            return descend(depth, depth);
        } catch (Deep thrown) {
            return thrown.depth;
        }
    }

    static int descend(int depth, int from) {
        if (depth == 0) {
            throw new Deep(from);
        }
        if (depth % 16 == 0) {
            return again(depth, from);
        }
        return descend(depth - 1, from) + 1;
    }

    /** Every sixteenth frame catches and throws another one. */
    static int again(int depth, int from) {
        try {
            return descend(depth - 1, from) + 1;
        } catch (Deep thrown) {
            throw new Deep(thrown.depth + depth);
        }
    }

    /** Those that the VM throws itself. */
    static int implicit(int seed) {
        int[] four = new int[4];
        int sum = 0;
        for (int i = 0; i < 8; i++) {
            try {
                four[i] = seed + i;
                sum += four[i];
            } catch (ArrayIndexOutOfBoundsException expected) {
                sum += 1000;
            }
            try {
                sum += lengthOf(i % 2 == 0 ? four : null);
            } catch (NullPointerException expected) {
                sum += 50000;
            }
        }
        return sum;
    }

    static int lengthOf(int[] array) {
        return array.length;
    }
}
