package kernels;

/** A binary search tree: virtual calls, fields, branches. */
public class Tree {
    private final int key;
    private Tree left, right;

    private Tree(int key) {
        this.key = key;
    }

    public void add(int other) {
        if (other < key) {
            if (left == null) left = new Tree(other);
            else left.add(other);
        } else if (other > key) {
            if (right == null) right = new Tree(other);
            else right.add(other);
        }
    }

    public int depth() {
        int l = left == null ? 0 : left.depth();
        int r = right == null ? 0 : right.depth();
        return 1 + (l > r ? l : r);
    }

    public static int run(int n) {
        Tree tree = new Tree(n / 2);
        for (int i = 0, key = 1; i < n; i++, key = key * 73 % 1009) tree.add(key);
        return tree.depth();
    }
}
