/** Calls each program once, with as much to do as was simulated in hardware. */
public final class Embedded {
    private Embedded() {}

    public static void main(String[] arguments) {
        System.out.println(emb.Pump.run(60));
        System.out.println(emb.Tasks.run(60));
        System.out.println(emb.Sort.run(6));
        System.out.println(emb.Fir.run(40));
    }
}
