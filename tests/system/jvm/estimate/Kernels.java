/**
 * Times kernels and programs that no calibration has seen, each by a method of its name. Prints the name, what it has computed, and the median
 * of the nanoseconds of its runs. The argument is the number of runs.
 */
public final class Kernels {
    private static final String[] NAMES = {
        "sieve", "matrix", "crc", "fib", "queens", "lists", "tree", "shapes", "quicksort", "hash", "power",
        "mandelbrot", "machine", "text", "pump", "tasks", "sort", "fir",
    };

    private Kernels() {}

    static int sieve() {
        return kernels.Sieve.run(6000);
    }

    static int matrix() {
        return kernels.Matrix.run(18);
    }

    static int crc() {
        return kernels.Crc.run(2000);
    }

    static int fib() {
        return kernels.Fib.run(17);
    }

    static int queens() {
        return kernels.Queens.run(6);
    }

    static int lists() {
        return kernels.Lists.run(2500);
    }

    static int tree() {
        return kernels.Tree.run(400);
    }

    static int shapes() {
        return kernels.Shapes.run(1500);
    }

    static int quicksort() {
        return kernels.Quicksort.run(700);
    }

    static int hash() {
        return kernels.Hash.run(4000);
    }

    static int power() {
        return kernels.Power.run(250);
    }

    static int mandelbrot() {
        return kernels.Mandelbrot.run(14);
    }

    static int machine() {
        return kernels.Machine.run(4000);
    }

    static int text() {
        return kernels.Text.run(160);
    }

    static int pump() {
        return emb.Pump.run(300);
    }

    static int tasks() {
        return emb.Tasks.run(300);
    }

    static int sort() {
        return emb.Sort.run(8);
    }

    static int fir() {
        return emb.Fir.run(100);
    }

    private static int run(int kernel) {
        switch (kernel) {
            case 0: return sieve();
            case 1: return matrix();
            case 2: return crc();
            case 3: return fib();
            case 4: return queens();
            case 5: return lists();
            case 6: return tree();
            case 7: return shapes();
            case 8: return quicksort();
            case 9: return hash();
            case 10: return power();
            case 11: return mandelbrot();
            case 12: return machine();
            case 13: return text();
            case 14: return pump();
            case 15: return tasks();
            case 16: return sort();
            default: return fir();
        }
    }

    /** Loads classes and links instructions, by a call that is not one of the methods. */
    private static int warmUp(int kernel) {
        switch (kernel) {
            case 0: return kernels.Sieve.run(6000);
            case 1: return kernels.Matrix.run(18);
            case 2: return kernels.Crc.run(2000);
            case 3: return kernels.Fib.run(17);
            case 4: return kernels.Queens.run(6);
            case 5: return kernels.Lists.run(2500);
            case 6: return kernels.Tree.run(400);
            case 7: return kernels.Shapes.run(1500);
            case 8: return kernels.Quicksort.run(700);
            case 9: return kernels.Hash.run(4000);
            case 10: return kernels.Power.run(250);
            case 11: return kernels.Mandelbrot.run(14);
            case 12: return kernels.Machine.run(4000);
            case 13: return kernels.Text.run(160);
            case 14: return emb.Pump.run(300);
            case 15: return emb.Tasks.run(300);
            case 16: return emb.Sort.run(8);
            default: return emb.Fir.run(100);
        }
    }

    public static void main(String[] arguments) {
        int runs = Integer.parseInt(arguments[0]);
        for (int kernel = 0; kernel < NAMES.length; kernel++) {
            int result = warmUp(kernel);
            long[] times = new long[runs];
            for (int i = 0; i < runs; i++) {
                long start = System.nanoTime();
                run(kernel);
                times[i] = System.nanoTime() - start;
            }
            java.util.Arrays.sort(times);
            System.out.println(NAMES[kernel] + " " + result + " " + times[runs / 2]);
        }
    }
}
