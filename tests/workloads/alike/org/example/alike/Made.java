package org.example.alike;

class Made {
    final int value;

    Made(int seed) {
        super();
        int x = seed;
        for (int n = 0; n < 2000; n++) {
            x ^= x << 13;
            x ^= x >>> 17;
            x ^= x << 5;
        }
        this.value = x;
    }
}
