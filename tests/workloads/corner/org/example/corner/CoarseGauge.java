package org.example.corner;

/** Loaded late. */
final class CoarseGauge extends Gauge {
    int read(int k) {
        return Work.stir(k + 2) + 3;
    }
}
