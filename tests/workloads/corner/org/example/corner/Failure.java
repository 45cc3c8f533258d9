package org.example.corner;

/** What is thrown. Each of its classes has the same constructor, too large to be inlined. */
abstract class Failure extends RuntimeException {
    int code;
    int again;

    Failure() {
        super();
    }
}
