package org.example.vm;

/** A node of a binary tree; a leaf has no children. */
final class TreeNode {
    private final TreeNode left;
    private final TreeNode right;

    TreeNode(TreeNode left, TreeNode right) {
        this.left = left;
        this.right = right;
    }

    static TreeNode bottomUp(int depth) {
        if (depth == 0) {
            return new TreeNode(null, null);
        }
        TreeNode left = bottomUp(depth - 1);
        return new TreeNode(left, bottomUp(depth - 1));
    }

    int check() {
        return left == null ? 1 : 1 + left.check() + right.check();
    }
}
