package org.example.alike;

/** Methods of different classes with equal code, which a compiler writes once: what each of them is called only the VM tells. */
public class Main {
    public static long run(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + turned(1);
            sum = sum * 31L + moved(1);
            sum = sum * 31L + made(1);
            sum = sum * 31L + thrown(1);
        }
        return sum;
    }

    /** All but the exceptions. */
    public static long quiet(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + turned(1);
            sum = sum * 31L + moved(1);
            sum = sum * 31L + made(1);
        }
        return sum;
    }

    /** Static methods, of which each has half as much again to do as the next. */
    public static long turned(int rounds) {
        int x = 1;
        for (int i = 0; i < rounds; i++) {
            x = Clock.turn(x, 4500);
            x = Wheel.turn(x, 3000);
            x = Screw.turn(x, 2000);
        }
        return x;
    }

    /** Virtual ones, of which the call does not say which it is. */
    public static long moved(int rounds) {
        Hand[] hands = new Hand[3];
        hands[0] = new Hour();
        hands[1] = new Minute();
        hands[2] = new Second();
        int x = 1;
        for (int i = 0; i < rounds; i++) {
            for (int k = 0; k < 6; k++) {
                x = hands[k % 3].move(x, 1500);
            }
        }
        return x;
    }

    /** Constructors, whose callers they are in what their common one does. */
    public static long made(int rounds) {
        int x = 1;
        for (int i = 0; i < rounds; i++) {
            x = new Red(x).value;
            x = new Green(x).value;
            x = new Blue(x).value;
        }
        return x;
    }

    /** Exceptions, those of the VM among them. */
    public static long thrown(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            for (int k = 0; k < 12; k++) {
                sum = sum * 31L + caught(k);
            }
        }
        return sum;
    }

    static int caught(int which) {
        try {
            return raise(which % 4, 10);
        } catch (RuntimeException thrown) {
            return which * 100;
        }
    }

    static int raise(int which, int depth) {
        if (depth > 0) {
            return raise(which, depth - 1) + 1;
        }
        if (which == 0) {
            throw new Broken("broken");
        }
        if (which == 1) {
            throw new Torn("torn");
        }
        if (which == 2) {
            int[] one = new int[1];
            return one[5];
        }
        return lengthOf(null);
    }

    static int lengthOf(int[] array) {
        return array.length;
    }
}
