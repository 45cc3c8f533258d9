package org.example.jit;

/** Work that is hot for a while. */
abstract class Part {
    abstract int go(int x);
}
