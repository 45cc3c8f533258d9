package org.example.corner;

/** Recursion: a hundred levels, more than is copied of a stack, and more than there is. */
final class Depth {
    static int round(int i) {
        int[] eight = new int[8];
        int sum = 0;
        for (int k = 0; k < 20; k++) {
            sum = sum * 31 + even(60 + (i + k) % 60, eight);
        }
        sum = sum + deep(1500, i);
        if (i % 128 == 100) {
            sum = sum + overflow(i);
        }
        return sum;
    }

    static int even(int left, int[] eight) {
        if (left == 0) {
            return bottom(eight);
        }
        return odd(left - 1, eight) + tiny(left);
    }

    static int odd(int left, int[] eight) {
        if (left == 0) {
            return small(5);
        }
        return even(left - 1, eight) + element(eight, left);
    }

    static int bottom(int[] eight) {
        int sum = 0;
        for (int i = 0; i < 60; i++) {
            sum = sum + element(eight, i);
        }
        return sum;
    }

    static int tiny(int x) {
        return x * 31 + 7;
    }

    static int small(int x) {
        int sum = 0;
        for (int i = 0; i < 6; i++) {
            sum = sum + tiny(x + i);
        }
        return sum;
    }

    static int element(int[] eight, int i) {
        return eight[i & 7] + small(i);
    }

    static int deep(int left, int number) {
        if (left == 0) {
            return Work.stir(500 + number % 4);
        }
        return deep(left - 1, number) + 1;
    }

    static int overflow(int number) {
        try {
            return endless(number);
        } catch (StackOverflowError expected) {
            return Work.stir(100);
        }
    }

    static int endless(int number) {
        return endless(number + 1) + 1;
    }
}
