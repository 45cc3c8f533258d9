package org.example.truth;

import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;

/** Events of all kinds that a recording of Java Flight Recorder has: work, allocations, contended monitors, waits. Two threads take turns. */
public final class Recorded {
    private static final int PARTS = 4;
    private static final Object MONITOR = new Object();
    private static byte[] kept;

    private Recorded() {}

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]) / PARTS;
        long sum = 0;
        for (int part = 0; part < PARTS; part++) {
            Thread other = new Thread(() -> rounds(rounds), "other");
            other.start();
            rounds(rounds);
            other.join();
            for (int round = 0; round < rounds; round++) {
                sum += Truth.round(round);
            }
            // A second recording begins another chunk of the first.
            try (Recording second = new Recording()) {
                second.start();
            }
        }
        System.out.println(sum + kept.length);
    }

    private static void rounds(int rounds) {
        for (int round = 0; round < rounds; round++) {
            kept = new byte[1 << 20];
            hold();
            LockSupport.parkNanos(100_000);
        }
    }

    private static void hold() {
        synchronized (MONITOR) {
            try {
                Thread.sleep(1);
                MONITOR.wait(1);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }
}
