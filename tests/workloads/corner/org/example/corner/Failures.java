package org.example.corner;

/** Exceptions whose constructors are equal. */
final class Failures {
    static int round(int i) {
        int sum = 0;
        for (int k = 0; k < 300; k++) {
            sum = sum * 31 + caught(i + k);
        }
        return sum;
    }

    static int caught(int number) {
        try {
            return fail(number, 3 + number % 4);
        } catch (Failure thrown) {
            if (thrown instanceof Broken) {
                return thrown.again + 1;
            }
            return thrown instanceof Closed ? thrown.again + thrown.code : thrown.code - 1;
        }
    }

    static int fail(int number, int left) {
        if (left > 0) {
            return fail(number, left - 1) + 1;
        }
        if (number % 3 == 0) {
            throw new Broken(number);
        }
        if (number % 3 == 1) {
            throw new Closed(number);
        }
        throw new Denied(number);
    }
}
