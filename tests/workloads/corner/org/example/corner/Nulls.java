package org.example.corner;

/** Exceptions that the VM makes: compiled code takes a signal for a null pointer. */
final class Nulls {
    static int[] noArray;
    static Crate noCrate;

    static int round(int i) {
        int sum = 0;
        for (int k = 0; k < 300; k++) {
            sum = sum * 31 + caught(i + k);
        }
        return sum;
    }

    static int caught(int number) {
        try {
            return descend(number, 2 + number % 11);
        } catch (RuntimeException expected) {
            if (expected instanceof NullPointerException) {
                return Work.stir(10 + number % 3);
            }
            return Work.stir(expected instanceof ArithmeticException ? 14 : 15);
        }
    }

    static int descend(int number, int left) {
        if (left % 5 == 4) {
            return guarded(number, left);
        }
        if (left > 0) {
            return descend(number, left - 1) + 1;
        }
        if (number % 6 == 0) {
            return number / (left + noCode());
        }
        if (number % 6 == 1) {
            int[] two = new int[2];
            return two[number];
        }
        if (number % 6 < 4) {
            return noArray[number];
        }
        return number % 6 == 4 ? noCrate.below.load.length : noCrate.weight();
    }

    /** Its handler is for something else. */
    static int guarded(int number, int left) {
        try {
            return descend(number, left - 1) + 2;
        } catch (Failure never) {
            return never.code;
        }
    }

    static int noCode() {
        return noArray == null ? 0 : noArray.length;
    }
}
