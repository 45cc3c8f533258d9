package org.example.truth;

/** Each scenario is a method of its own; truth.json says what a profile of it must show. */
public class Main {
    public static long run(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + shares(1);
            sum = sum * 31L + recursion(1);
            sum = sum * 31L + pingPong(1);
            sum = sum * 31L + interfaces(1);
            sum = sum * 31L + exceptions(1);
            sum = sum * 31L + threads(1);
            sum = sum * 31L + tiny(1);
            sum = sum * 31L + virtual(1);
            sum = sum * 31L + locked(1);
            sum = sum * 31L + jni(1);
        }
        return sum;
    }

    /** The names say each method's own share in percent. The length of a round varies, so that it cannot beat with a sampling period. */
    public static long shares(int rounds) {
        int x = 1;
        for (int i = 0; i < rounds; i++) {
            int base = 600 + i * 389 % 801;
            x = Shares.outer10(x, base);
            x = Shares.both10(x, base);
            x = Shares.work5(x, base);
        }
        return x;
    }

    public static long recursion(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Recursion.down(80, i + 1);
        }
        return sum;
    }

    public static long pingPong(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + Recursion.ping(70, i + 1);
        }
        return sum;
    }

    public static long interfaces(int rounds) {
        Shape[] shapes = new Shape[3];
        shapes[0] = new Square();
        shapes[1] = new Triangle();
        shapes[2] = new Comb();
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            for (int side = 0; side < 3000; side++) {
                sum = sum * 31L + shapes[side % 3].area(side);
            }
        }
        return sum;
    }

    public static long exceptions(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            for (int depth = 40; depth < 60; depth++) {
                sum = sum * 31L + Unwinding.caught(depth);
            }
            sum = sum * 31L + Unwinding.implicit(i);
        }
        return sum;
    }

    /** The workers' shares of the work are in their names; they run at the same time. */
    public static long threads(int rounds) {
        Worker fifty = new Worker50(rounds);
        Worker thirty = new Worker30(rounds);
        Worker twenty = new Worker20(rounds);
        fifty.start();
        thirty.start();
        twenty.start();
        return (fifty.result() * 31L + thirty.result()) * 31L + twenty.result();
    }

    public static long tiny(int rounds) {
        Tiny tiny = new Tiny();
        for (int i = 0; i < rounds; i++) {
            for (int k = 0; k < 5000; k++) {
                tiny.set(Tiny.add(tiny.get(), Tiny.twice(k)));
            }
        }
        return tiny.get();
    }

    public static long virtual(int rounds) {
        Step[] steps = new Step[2];
        steps[0] = new Step();
        steps[1] = new LongStep();
        int x = 1;
        for (int i = 0; i < rounds; i++) {
            for (int k = 0; k < 2000; k++) {
                x = steps[k & 1].go(x);
            }
        }
        return x;
    }

    /** Two threads that count under one lock. */
    public static long locked(int rounds) {
        Counter counter = new Counter();
        CountingWorker other = new CountingWorker(counter, rounds);
        other.start();
        for (int i = 0; i < rounds; i++) {
            counter.increments(2000);
        }
        try {
            other.join();
        } catch (InterruptedException never) {
            return 0L;
        }
        return counter.count();
    }

    public static long jni(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            for (int levels = 0; levels < 100; levels++) {
                sum = sum * 31L + Native.bounce(levels % 8, i + levels);
            }
        }
        return sum;
    }
}
