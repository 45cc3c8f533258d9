package org.example.vm;

/** Many short-lived trees beside one that lives long. */
final class BinaryTrees {
    static final int MIN_DEPTH = 4;
    static final int MAX_DEPTH = 10;

    static long run() {
        long sum = TreeNode.bottomUp(MAX_DEPTH + 1).check();
        TreeNode longLived = TreeNode.bottomUp(MAX_DEPTH);
        for (int depth = MIN_DEPTH; depth <= MAX_DEPTH; depth += 2) {
            int iterations = 1 << (MAX_DEPTH - depth + MIN_DEPTH);
            sum = sum * 31L + trees(depth, iterations);
        }
        return sum * 31L + longLived.check();
    }

    static int trees(int depth, int iterations) {
        int check = 0;
        for (int i = 0; i < iterations; i++) {
            check += TreeNode.bottomUp(depth).check();
        }
        return check;
    }
}
