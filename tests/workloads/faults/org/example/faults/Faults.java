package org.example.faults;

/** Reads through null, each in a method that catches what it throws. */
final class Faults {
    static int called(String text) {
        try {
            return text.length();
        } catch (NullPointerException expected) {
            return 100;
        }
    }

    static int element(int[] array) {
        try {
            return array[0];
        } catch (NullPointerException expected) {
            return 1000;
        }
    }

    static int field(Faulter faulter) {
        try {
            return roundsOf(faulter);
        } catch (NullPointerException expected) {
            return 10000;
        }
    }

    static int roundsOf(Faulter faulter) {
        return faulter.rounds;
    }

    static int descend(int depth, int[] array) {
        if (depth == 0) {
            return element(array);
        }
        return descend(depth - 1, array) + 1;
    }
}
