package org.example.cradle;

/** Numbers times 65536: exact on every machine. */
final class FixedPoint {
    static final int ONE = 65536;

    static int mul(int a, int b) {
        return (int) ((long) a * b >> 16);
    }

    /** Good to four digits up to a right angle. */
    static int sin(int angle) {
        int square = mul(angle, angle);
        int cube = mul(square, angle);
        return angle - mul(cube, 10923) + mul(mul(cube, square), 546);
    }

    static int cos(int angle) {
        int square = mul(angle, angle);
        return ONE - square / 2 + mul(mul(square, square), 2731);
    }
}
