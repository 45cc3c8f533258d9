package kernels;

/** A cyclic redundancy check, bit by bit: shifts and branches. */
public final class Crc {
    private Crc() {}

    public static int run(int n) {
        int crc = -1;
        for (int i = 0; i < n; i++) {
            crc ^= i & 255;
            for (int bit = 0; bit < 8; bit++) {
                if ((crc & 1) != 0) crc = (crc >>> 1) ^ 0xedb88320;
                else crc >>>= 1;
            }
        }
        return ~crc;
    }
}
