"""What do perf and varid see, and how large is what they write? The evaluation's figures 9 to 14 and tables IV and V."""

from paper_figures import WORKLOADS, percent, table

LAYERS = ("app", "framework", "vm", "native", "kernel")
VM_IMAGES = ("libart.so.0", "artvm", "libopenjdk.so", "libjavacore.so", "libicu_jni.so")
# What is said of a run's sizes.
SIZES = {
    "load-from-dex": "load-from-dex: substitute symbol file",
    "method-invoke": "method-invoke: log of events",
    "perf.data": "load-from-dex: samples (`perf.data`)",
    "all-else": "load-from-dex: all else in the session",
}


def layer_shares(rows):
    """Each layer's own samples."""
    return {layer: sum(int(row["self"]) for row in rows if row["layer"] == layer) for layer in LAYERS}


def plain_parts(images):
    """What plain perf can tell: samples in the VM, in the kernel, elsewhere."""
    vm = sum(samples for image, samples in images.items() if image in VM_IMAGES)
    kernel = sum(samples for image, samples in images.items() if image == "[kernel]")
    return vm, kernel, sum(images.values()) - vm - kernel


# As far as the text says: the figures themselves are pictures.
PRINTED_LAYERS = {
    "math": ["printed (figure 9)", "56 %", "", "less than 9 %", "", ""],
    "cradle": ["printed (figure 10)", "less than `libskia`", "", "", "`libskia`: most but for the kernel", "most"],
    "vm": ["printed (figure 11)", "", "", "with services, close to 70 %", "", ""],
}


def layers(perf, varid):
    """Figures 9 to 11: the barrier, and the bridge."""
    text = """## Layers, without varid and with it (figures 9 to 11)

Of `perf record` of the app without dim, and of `varid record` of it; both at 997 Hz, `-e cycles`, of a run of four times the rounds of the others here.
Shares of samples. perf sees the VM's library, the interpreter in it: what runs in that is the barrier. varid gives a sample in the interpreter's loop
to the method that it executes (`app`: of the app's dex file; `framework`: of the boot class path); `vm` is what is left: the collector, the class linker, JNI.

"""
    rows = []
    for workload, name in WORKLOADS.items():
        vm, kernel, other = plain_parts(perf[workload])
        whole = vm + kernel + other
        rows.append([name, "plain perf", "not seen", "not seen", *(percent(each, whole) for each in (vm, other, kernel))])
        shares = layer_shares(varid[workload, "layer"])
        whole = sum(shares.values())
        rows.append([name, "varid", *(percent(shares[layer], whole) for layer in LAYERS)])
        if workload in PRINTED_LAYERS:
            rows.append([name, *PRINTED_LAYERS[workload]])
    text += table(["workload", "seen by", *LAYERS], rows)
    text += """
As printed, Math is the app's own work, the cradle's is a native library's, VM's is the virtual machine's. The paper's Math had a compiler, and its
samples were of the whole system; the cradle here draws into memory, so no driver has its kernel share. 0xBench 3D has no such figure there.

The same samples by image (`varid report --by image`): what plain perf has for the VM's is the app's.

"""
    for workload, name in WORKLOADS.items():
        seen = perf[workload]
        ours = {row["image"]: int(row["self"]) for row in varid[workload, "image"]}
        whole, our_whole = sum(seen.values()), sum(ours.values())
        images = sorted(seen.keys() | ours.keys(), key=lambda image: -max(seen.get(image, 0) / whole, ours.get(image, 0) / our_whole))
        rows = [[f"`{image}`", percent(seen.get(image, 0), whole), percent(ours.get(image, 0), our_whole)] for image in images[:6]]
        text += f"{name}, {whole} and {our_whole} samples:\n\n" + table(["image", "plain perf", "varid"], rows) + "\n"
    return text


def mapped(rows):
    """Table IV."""
    of_java = [row for row in rows if row["class"]]
    kinds = (
        [row for row in of_java if row["layer"] == "framework"],
        [row for row in of_java if row["layer"] == "app" and int(row["line"]) > 0],
        [row for row in of_java if row["map_file"].rsplit("/")[-1] == "remap.elf"],
    )
    shown = []
    for row in (max(kind, key=lambda row: int(row["total"])) for kind in kinds if kind):
        place = f"{row['map_start']}-{row['map_end']} {row['map_mode'] or '----'} `{row['map_file'].rsplit('/')[-1]}`"
        shown.append([row["pc"], row["vma"], f"`{row['method']}`", f"`{row['class']}`", f"`{row['file'] or '-'}`", row["line"], place])
    return (
        """## Samples in the memory map (table IV)

Of Newton's Cradle, `varid report --by dim`: of the framework, of the app and of its native methods the place with the most samples, with the mapping that
it is in. Printed are the like: `run` of the framework (line 2044), `atan` of the app's `BallsView.java` (line 616), and `native_drawBitmap`, without a line
(-2: native; -1: its file has no lines), which the paper cannot find in the map. Here a native method has an address in a range that is nobody's: `remap.elf`.

"""
        + table(["PC", "VMA", "method", "class", "file", "line", "mapped"], shown)
        + "\n"
    )


ROOT = "org.example.scene.Main.run"


def reached(edges):
    """Those that lead down from the app's method."""
    known = {ROOT}
    found = []
    while new := [edge for edge in edges if edge["symbol"] in known and edge not in found]:
        found += new
        known |= {edge["other_symbol"] for edge in new}
    return [edge for edge in edges if edge in found]


def graph(rows):
    """Table V and figure 13."""
    edges = [row for row in rows if row["relation"] == "callee"]
    total = max(int(row["samples"]) / float(row["percent"]) * 100 for row in edges if row["symbol"] == ROOT)
    native = sum(int(row["samples"]) for row in edges if row["layer"] == "app" and row["other_layer"] == "native")
    edges = reached([row for row in edges if float(row["percent"]) >= 5])
    edges.sort(key=lambda row: -int(row["samples"]))
    shown = [
        [f"`{row['symbol']}`", f"`{row['other_symbol']}`", f"`{row['other_image']}`", row["samples"], f"{float(row['percent']):.1f} %"]
        for row in edges
    ]
    return (
        f"""## Call graph (table V, figure 13)

Of 0xBench 3D, from the app's method down: `varid report --callgraph`; calls with at least 5 % of the caller's total, those with the most samples first.
Printed (table V) are three symbols: of the 113 samples of an app 45 its own and 68 those of `libGLES_android.so`, the graphics library that it calls: 60 %.
Here of {total:.0f} samples of the app's method {percent(native, total)} are in the native library that its methods call.

"""
        + table(["method", "calls", "of", "samples", "of its total"], shown[:16])
        + "\nFigure 13 is a drawing of such a graph by `dot`. This one's source, of the same calls:\n\n```dot\n"
        + dot(edges[:24])
        + "```\n\n"
    )


def dot(edges):
    """The call graph for dot."""
    text = "digraph calls {\n    node [shape=box];\n"
    for row in edges:
        one, other = (row[key].replace('"', r"\"") for key in ("symbol", "other_symbol"))
        text += f'    "{one}" -> "{other}" [label="{row["samples"]}"];\n'
    return text + "}\n"


def logs(found, code, framework):
    """Figure 14."""
    lengths = [length for length, _ in found["math", "load-from-dex"]]
    text = """## Sizes of logs (figure 14)

Bytes after runs of so many times the shortest one's length, on the machine that booted the board. A log is what tells addresses' methods: for load-from-dex
the substitute symbol file (`symbols/*.substitute.sym` in the session) of the app's dex file; for method-invoke a line for each event (`--log-calls`:
`calls.log.PID`). Samples are no log: `perf.data` has them at 997 Hz, so it grows with the run, under either tactic and under plain perf; how many
there are depends on the machine. All else in the session are names and lines of whatever was sampled at least once, so it stops growing.

"""
    rows = []
    for workload, name in WORKLOADS.items():
        for what, said in SIZES.items():
            rows.append([name, f"{code[workload]:,}", said, *(f"{size:,}" for _, size in found[workload, what])])
    text += table(["workload", "code, bytes", "what", *(f"{length}x" for length in lengths)], rows)
    shares = ", ".join(f"{name} {percent(found[workload, 'load-from-dex'][0][1], code[workload], 0)}" for workload, name in WORKLOADS.items())
    return text + f"""
The substitute symbol file has all methods of the app's dex file and is made from that alone, so it cannot grow: {shares} of the code's size.
That of the framework, where it is sampled, adds {framework:,} bytes, once. Small differences in method-invoke's are digits of thread ids and of times.

Printed: load-from-dex smallest for the cradle of 25.9 KB of code, 228 to 276 KB for the three of 0xBench with 236.6 KB of code together, the same after any time;
method-invoke takes 166 KB more for the cradle and up to 538 KB more for 3D.

"""
