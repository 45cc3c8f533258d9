package org.example.truth;

import java.util.concurrent.locks.LockSupport;

/** A thread enters a monitor that another one holds, and parks, a known number of times. */
public final class Contended {
    private static final Object MONITOR = new Object();

    private static volatile int entered;
    private static volatile boolean released;
    private static int parked;

    private Contended() {
    }

    static void enter() {
        synchronized (MONITOR) {
            entered++;
        }
    }

    static void park() {
        while (!released) {
            parked++;
            LockSupport.park();
        }
        released = false;
    }

    private static void await(Thread thread, Thread.State state) throws InterruptedException {
        while (thread.getState() != state) {
            Thread.sleep(1);
        }
    }

    private static void contend() throws InterruptedException {
        Thread other = new Thread(Contended::enter, "other");
        synchronized (MONITOR) {
            other.start();
            await(other, Thread.State.BLOCKED);
        }
        other.join();
    }

    private static void unpark() throws InterruptedException {
        Thread other = new Thread(Contended::park, "other");
        other.start();
        await(other, Thread.State.WAITING);
        released = true;
        LockSupport.unpark(other);
        other.join();
    }

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        for (int round = 0; round < rounds; round++) {
            contend();
            unpark();
        }
        // What was sampled last is read of a process that runs.
        Thread.sleep(300);
        System.out.println(entered + " " + parked);
    }
}
