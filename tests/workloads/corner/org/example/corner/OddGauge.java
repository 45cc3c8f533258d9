package org.example.corner;

/** Loaded late. */
final class OddGauge extends FineGauge {
    int read(int k) {
        return Work.stir(k + 3) + 4;
    }
}
