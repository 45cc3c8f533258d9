package kernels;

/** Placements of queens: fields of arrays, recursion, branches. */
public final class Queens {
    private final int size;
    private final boolean[] columns, up, down;

    private Queens(int size) {
        this.size = size;
        columns = new boolean[size];
        up = new boolean[2 * size];
        down = new boolean[2 * size];
    }

    private int place(int row) {
        if (row == size) return 1;
        int found = 0;
        for (int column = 0; column < size; column++) {
            if (columns[column] || up[row + column] || down[row - column + size]) continue;
            columns[column] = up[row + column] = down[row - column + size] = true;
            found += place(row + 1);
            columns[column] = up[row + column] = down[row - column + size] = false;
        }
        return found;
    }

    public static int run(int n) {
        return new Queens(n).place(0);
    }
}
