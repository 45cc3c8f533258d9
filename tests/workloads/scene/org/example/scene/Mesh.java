package org.example.scene;

/** A solid: points, and quadrangles whose corners go clockwise where they are seen from outside. 65536 are a unit. */
final class Mesh {
    final int[] x;
    final int[] y;
    final int[] z;
    int points;
    final int[] corners;
    final int[] color;
    final int[] normal;
    int faces;

    Mesh(int points, int faces) {
        x = new int[points];
        y = new int[points];
        z = new int[points];
        corners = new int[4 * faces];
        color = new int[faces];
        normal = new int[3 * faces];
    }

    /** A further point; its number. */
    int point(int px, int py, int pz) {
        x[points] = px;
        y[points] = py;
        z[points] = pz;
        points++;
        return points - 1;
    }

    /** A further face, and the direction that it looks in, 4096 long. */
    void face(int a, int b, int c, int d, int rgb) {
        corners[4 * faces] = a;
        corners[4 * faces + 1] = b;
        corners[4 * faces + 2] = c;
        corners[4 * faces + 3] = d;
        color[faces] = rgb;
        long ux = x[c] - x[a];
        long uy = y[c] - y[a];
        long uz = z[c] - z[a];
        long vx = x[d] - x[b];
        long vy = y[d] - y[b];
        long vz = z[d] - z[b];
        long nx = uy * vz - uz * vy >> 16;
        long ny = uz * vx - ux * vz >> 16;
        long nz = ux * vy - uy * vx >> 16;
        int length = Fixed.root(nx * nx + ny * ny + nz * nz);
        if (length > 0) {
            normal[3 * faces] = (int) (nx * 4096 / length);
            normal[3 * faces + 1] = (int) (ny * 4096 / length);
            normal[3 * faces + 2] = (int) (nz * 4096 / length);
        }
        faces++;
    }

    /** A box around a point; each pair of sides has a color. */
    void box(int cx, int cy, int cz, int half, int high, int sides, int tops, int fronts) {
        int first = points;
        for (int i = 0; i < 8; i++) {
            int px = (i & 1) == 0 ? cx - half : cx + half;
            int py = (i & 2) == 0 ? cy - high : cy + high;
            int pz = (i & 4) == 0 ? cz - half : cz + half;
            point(px, py, pz);
        }
        face(first, first + 2, first + 3, first + 1, fronts);
        face(first + 4, first + 5, first + 7, first + 6, fronts);
        face(first + 1, first + 3, first + 7, first + 5, sides);
        face(first, first + 4, first + 6, first + 2, sides);
        face(first + 2, first + 6, first + 7, first + 3, tops);
        face(first, first + 1, first + 5, first + 4, tops);
    }
}
