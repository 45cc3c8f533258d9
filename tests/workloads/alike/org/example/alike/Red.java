package org.example.alike;

final class Red extends Made {
    Red(int seed) {
        super(seed);
    }
}
