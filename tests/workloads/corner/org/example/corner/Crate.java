package org.example.corner;

/** A few words that the collector takes. */
final class Crate {
    final Crate below;
    final int[] load;

    Crate(Crate below, int size) {
        this.below = below;
        load = new int[size];
        load[size / 2] = size;
    }

    int weight() {
        int sum = 0;
        Crate crate = this;
        while (crate != null) {
            sum = sum + crate.load.length;
            crate = crate.below;
        }
        return sum;
    }
}
