/** Calls and blocks in an order that a test knows. */
public class Order {
    static int half(int n) {
        return n / 2;
    }

    static int checked(int n) {
        if (n < 0) {
            throw new IllegalArgumentException();
        }
        return n;
    }

    static int thrown(int depth) {
        return depth == 0 ? checked(-1) : thrown(depth - 1) + 1;
    }

    static int chosen(int n) {
        int sum = n + 1;
        if (n % 2 == 1) {
            sum += half(n);
            sum /= 3;
        } else {
            sum += checked(n);
        }
        return sum;
    }

    static int caught(int depth) {
        try {
            return thrown(depth);
        } catch (IllegalArgumentException e) {
            return half(depth);
        }
    }

    static void rounds(int n) {
        for (int i = 0; i < n; i++) {
            chosen(i);
            caught(i % 4);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        int n = Integer.parseInt(arguments[0]);
        rounds(n);
        Thread thread = new Thread(() -> rounds(n / 2), "second");
        thread.start();
        thread.join();
    }
}
