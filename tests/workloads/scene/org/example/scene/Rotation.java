package org.example.scene;

/** A turn about the vertical axis and then one about the screen's horizontal. */
final class Rotation {
    private final int xx;
    private final int xz;
    private final int yx;
    private final int yy;
    private final int yz;
    private final int zx;
    private final int zy;
    private final int zz;

    Rotation(int yaw, int pitch) {
        xx = Fixed.cos(yaw);
        xz = Fixed.sin(yaw);
        yy = Fixed.cos(pitch);
        zy = Fixed.sin(pitch);
        yx = Fixed.mul(zy, xz);
        yz = -Fixed.mul(zy, xx);
        zx = -Fixed.mul(yy, xz);
        zz = Fixed.mul(yy, xx);
    }

    int x(int px, int pz) {
        return Fixed.mul(xx, px) + Fixed.mul(xz, pz);
    }

    int y(int px, int py, int pz) {
        return Fixed.mul(yx, px) + Fixed.mul(yy, py) + Fixed.mul(yz, pz);
    }

    int z(int px, int py, int pz) {
        return Fixed.mul(zx, px) + Fixed.mul(zy, py) + Fixed.mul(zz, pz);
    }
}
