package org.example.jit;

/** A loop over an array whose length the compiler does not know. */
final class Bounds {
    static int caught(int[] values, int end) {
        try {
            return sum(values, end);
        } catch (ArrayIndexOutOfBoundsException thrown) {
            return step(end);
        }
    }

    static int sum(int[] values, int end) {
        int sum = 0;
        for (int i = 0; i < end; i++) {
            sum = sum * 31 + values[i];
        }
        return sum;
    }

    static int step(int x) {
        for (int n = 0; n < 50; n++) {
            x = x * 69069 + 1;
        }
        return x;
    }
}
