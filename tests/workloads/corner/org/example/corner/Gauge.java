package org.example.corner;

/** What a compiler takes for a class without subclasses, as long as none is loaded. */
class Gauge {
    int read(int k) {
        return Work.stir(k) + 1;
    }

    int twice(int k) {
        return read(k) ^ read(k + 1);
    }
}
