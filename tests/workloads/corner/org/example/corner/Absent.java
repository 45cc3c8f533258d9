package org.example.corner;

/** Never made. Its constructor comes first, and a compiler may keep one code for all of them. */
final class Absent extends Failure {
    Absent(int code) {
        super();
        this.code = Work.stir(20 + code % 8) + code;
        int sum = 0;
        for (int i = 0; i < 3; i++) {
            sum = sum * 31 + Work.stir(code % 16 + i);
            sum = sum ^ this.code + i;
        }
        again = sum;
    }
}
