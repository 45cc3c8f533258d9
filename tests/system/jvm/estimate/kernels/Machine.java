package kernels;

/** A state machine: tableswitch, lookupswitch, chars. */
public final class Machine {
    private Machine() {}

    public static int run(int n) {
        int state = 0, words = 0;
        for (int i = 0; i < n; i++) {
            char c = (char) (i * 31 % 7 == 0 ? ' ' : i % 11 == 0 ? '-' : 'a' + i % 26);
            switch (state) {
                case 0:
                    switch (c) {
                        case ' ': break;
                        case '-': state = 2; break;
                        case 'q': state = 3; break;
                        default: state = 1; words++;
                    }
                    break;
                case 1:
                    if (c == ' ') state = 0;
                    break;
                case 2:
                    state = c == '-' ? 3 : 1;
                    break;
                default:
                    state = 0;
            }
        }
        return words;
    }
}
