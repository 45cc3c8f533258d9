package org.example.corner;

/** A thread that finds a number. */
abstract class Runner extends Thread {
    protected final int size;
    protected int found;

    Runner(String name, int size) {
        super(name);
        this.size = size;
    }

    final int result() {
        try {
            join();
        } catch (InterruptedException never) {
            return 0;
        }
        return found;
    }
}
