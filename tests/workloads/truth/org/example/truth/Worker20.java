package org.example.truth;

/** Does 20 hundredths of the workers' work. */
final class Worker20 extends Worker {
    Worker20(int rounds) {
        super("worker-20", rounds);
    }

    int work(int x) {
        for (int n = 2000; n > 0; n--) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        return x;
    }
}
