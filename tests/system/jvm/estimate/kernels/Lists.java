package kernels;

/** A linked list: objects, constructors, fields of references. */
public final class Lists {
    private final int value;
    private Lists next;

    private Lists(int value, Lists next) {
        this.value = value;
        this.next = next;
    }

    public static int run(int n) {
        Lists list = null;
        for (int i = 0; i < n; i++) list = new Lists(i, list);
        Lists reversed = null;
        while (list != null) {
            Lists next = list.next;
            list.next = reversed;
            reversed = list;
            list = next;
        }
        int sum = 0;
        for (Lists at = reversed; at != null; at = at.next) sum = sum * 31 + at.value;
        return sum;
    }
}
