package org.example.scene;

/** Numbers times 65536, and angles of which 1024 are a turn: exact on every machine. */
final class Fixed {
    static final int ONE = 65536;
    static final int TURN = 1024;

    static int mul(int a, int b) {
        return (int) ((long) a * b >> 16);
    }

    /** Good to two thousandths: a quotient of two parabolas. */
    static int sin(int angle) {
        int half = TURN / 2;
        int within = angle & TURN - 1;
        int product = (within & half - 1) * (half - (within & half - 1));
        int sine = (int) ((long) product * 16 * ONE / (5 * half * half - 4 * product));
        return within < half ? sine : -sine;
    }

    static int cos(int angle) {
        return sin(angle + TURN / 4);
    }

    /** The largest number whose square is not above the value. */
    static int root(long value) {
        long root = 0L;
        for (long bit = 1L << 24; bit != 0L; bit >>= 1) {
            long next = root + bit;
            if (next * next <= value) {
                root = next;
            }
        }
        return (int) root;
    }
}
