package org.example.jit;

/** What makes a VM's compiler throw its code away, or leave it in the middle of a method. */
public class Main {
    public static long run(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + churn(1);
            sum = sum * 31L + hierarchy(1);
            sum = sum * 31L + bounds(1);
            sum = sum * 31L + loop(1);
        }
        return sum;
    }

    /** Of many methods a few are hot at a time: a small code cache cannot hold all of them. */
    public static long churn(int rounds) {
        Part[] parts = Parts.all();
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + window(parts, i * 5 % 61, i + 1);
        }
        return sum;
    }

    static int window(Part[] parts, int first, int x) {
        for (int times = 0; times < 150; times++) {
            for (int k = 0; k < 4; k++) {
                x = parts[(first + k) % parts.length].go(x);
            }
        }
        return x;
    }

    /**
     * Methods that are compiled as if a class had no subclasses, and a call one target, until neither holds any more. A class can be
     * loaded once: the rounds go through them.
     */
    public static long hierarchy(int rounds) {
        Target usual = new Target();
        Target other = new Other();
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Hierarchies.go(i % Hierarchies.COUNT, usual, other, i + 1);
        }
        return sum;
    }

    /** Loops whose bounds are checked once, before them; in each round the check fails a few times. */
    public static long bounds(int rounds) {
        int[] values = new int[100];
        for (int i = 0; i < values.length; i++) {
            values[i] = i * 7;
        }
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            for (int times = 0; times < 400; times++) {
                sum = sum * 31L + Bounds.caught(values, times % 100 == 99 ? 101 : times % 50 + 50);
            }
        }
        return sum;
    }

    /** One call, one loop. */
    public static long loop(int rounds) {
        int x = 1;
        for (long n = rounds * 20000L; n > 0L; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
            if ((x & 1023) == 0) {
                x = Bounds.step(x);
            }
        }
        return x;
    }
}
