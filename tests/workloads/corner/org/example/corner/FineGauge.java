package org.example.corner;

/** Loaded late. */
class FineGauge extends Gauge {
    int read(int k) {
        return Work.stir(k + 1) + 2;
    }
}
