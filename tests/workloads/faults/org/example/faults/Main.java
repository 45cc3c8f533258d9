package org.example.faults;

/** Null pointer exceptions that compiled code does not test for: it reads through null, and the VM's handler of SIGSEGV throws. */
public class Main {
    /** A round: a hundred reads of each kind here, and a hundred of two kinds in another thread. */
    public static long run(int rounds) {
        Faulter other = new Faulter(rounds * 100);
        other.start();
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31L + calls(100);
            sum = sum * 31L + elements(100);
            sum = sum * 31L + fields(100);
            sum = sum * 31L + deep(100);
        }
        return sum * 31L + other.result();
    }

    /** A method of null is called. */
    public static long calls(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum + Faults.called(i % 4 == 0 ? "text" : null);
        }
        return sum;
    }

    /** An element of null is read. */
    public static long elements(int rounds) {
        int[] array = new int[1];
        array[0] = 7;
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum + Faults.element(i % 4 == 0 ? array : null);
        }
        return sum;
    }

    /** A field of null is read, in a method that is small enough to be inlined. */
    public static long fields(int rounds) {
        Faulter faulter = new Faulter(3);
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum + Faults.field(i % 4 == 0 ? faulter : null);
        }
        return sum;
    }

    /** The same below forty frames of one method, which the exception does not leave. */
    public static long deep(int rounds) {
        long sum = 0L;
        for (int i = 0; i < rounds; i++) {
            sum = sum + Faults.descend(40, null);
        }
        return sum;
    }
}
