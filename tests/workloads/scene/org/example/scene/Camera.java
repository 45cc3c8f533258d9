package org.example.scene;

/** What sees a mesh and lights it from the upper left. */
final class Camera {
    static final int FOCAL = 260 * 256;
    static final int LIGHT_X = -1900;
    static final int LIGHT_Y = 2700;
    static final int LIGHT_Z = -2400;

    private final int[] screenX;
    private final int[] screenY;
    private final int[] depth;

    Camera() {
        screenX = new int[512];
        screenY = new int[512];
        depth = new int[512];
    }

    /** Draws a mesh that is turned about its origin and then moved; all of it must be before the camera. */
    void draw(Mesh mesh, Rotation rotation, int x, int y, int z) {
        project(mesh, rotation, x, y, z);
        for (int face = 0; face < mesh.faces; face++) {
            drawFace(mesh, face, shade(mesh.color[face], brightness(mesh, face, rotation)));
        }
    }

    private void project(Mesh mesh, Rotation rotation, int x, int y, int z) {
        for (int i = 0; i < mesh.points; i++) {
            int px = mesh.x[i];
            int py = mesh.y[i];
            int pz = mesh.z[i];
            long distance = rotation.z(px, py, pz) + z;
            screenX[i] = Screen.WIDTH * 128 + (int) ((long) (rotation.x(px, pz) + x) * FOCAL / distance);
            screenY[i] = Screen.HEIGHT * 128 - (int) ((long) (rotation.y(px, py, pz) + y) * FOCAL / distance);
            depth[i] = (int) ((1L << 36) / distance);
        }
    }

    /** Of 256; a side in the shadow has 80. */
    private static int brightness(Mesh mesh, int face, Rotation rotation) {
        int nx = mesh.normal[3 * face];
        int ny = mesh.normal[3 * face + 1];
        int nz = mesh.normal[3 * face + 2];
        int light = rotation.x(nx, nz) * LIGHT_X + rotation.y(nx, ny, nz) * LIGHT_Y + rotation.z(nx, ny, nz) * LIGHT_Z;
        return light > 0 ? 80 + (light >> 12) * 176 / 4096 : 80;
    }

    private static int shade(int rgb, int brightness) {
        int part = brightness > 256 ? 256 : brightness;
        return (rgb & 0xff00ff) * part >> 8 & 0xff00ff | (rgb & 0xff00) * part >> 8 & 0xff00;
    }

    private void drawFace(Mesh mesh, int face, int rgb) {
        int a = mesh.corners[4 * face];
        int b = mesh.corners[4 * face + 1];
        int c = mesh.corners[4 * face + 2];
        int d = mesh.corners[4 * face + 3];
        drawTriangle(a, b, c, rgb);
        drawTriangle(a, c, d, rgb);
    }

    private void drawTriangle(int a, int b, int c, int rgb) {
        Screen.triangle(screenX[a], screenY[a], depth[a], screenX[b], screenY[b], depth[b], screenX[c], screenY[c], depth[c], rgb);
    }
}
