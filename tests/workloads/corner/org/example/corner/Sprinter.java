package org.example.corner;

/** Its own run works, on a stack that is a few frames deep. */
class Sprinter extends Runner {
    Sprinter(int size) {
        super("sprinter", size);
    }

    public void run() {
        for (int i = 0; i < 20; i++) {
            found = found + stride(size + i, 4 + size % 40);
        }
    }

    static int stride(int size, int left) {
        if (left == 0) {
            return Work.stir(size);
        }
        return stride(size, left - 1) + left;
    }
}
