package org.example.vm;

/** 0xBench's VM: what keeps the collector busy. */
public class Main {
    public static long run(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + trees(1);
            sum = sum * 31L + arrays(1);
            sum = sum * 31L + chain(1);
        }
        return sum;
    }

    public static long trees(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + BinaryTrees.run();
        }
        return sum;
    }

    public static long arrays(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + LargeArrays.run(60);
        }
        return sum;
    }

    public static long chain(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Chain.slide(20000, 2000);
        }
        return sum;
    }
}
