package kernels;

/** A hash of bytes: baload, imul. */
public final class Hash {
    private Hash() {}

    private static int of(byte[] bytes) {
        int hash = 0x811c9dc5;
        for (int i = 0; i < bytes.length; i++) hash = (hash ^ (bytes[i] & 255)) * 16777619;
        return hash;
    }

    public static int run(int n) {
        byte[] bytes = new byte[n];
        for (int i = 0; i < n; i++) bytes[i] = (byte) (i * 7);
        return of(bytes);
    }
}
