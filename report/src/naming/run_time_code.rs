//! Determines the layer of run-time code.
//!
//! Its image only shows that a process generated it. The name shows the compiler and the source: the perf maps and
//! jitdumps of HotSpot, V8 and CPython, and async-profiler's folded stacks, have different names.

use varid_model::{Layer, Marker};

/// Whether HotSpot may have generated the code. Functions of programs in other runtimes may have the same names as
/// HotSpot's stubs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hotspot {
    /// Its library is mapped, or the recording is from another profiler, which may not list libraries.
    Possible,
    Absent,
}

/// Returns the layer of code with this name in an image with this name and layer.
pub fn layer(name: &str, image: &str, layer: Layer, hotspot: Hotspot) -> Layer {
    match layer {
        Layer::App => of_vm(name, hotspot)
            .or_else(|| java_method(name).map(of_java))
            .unwrap_or(layer),
        // An imported recording does not specify layers.
        Layer::Native if image == Marker::Native.symbol() => java_method(name)
            .filter(|method| has_package(method))
            .map_or(layer, of_java),
        _ => layer,
    }
}

/// Returns the layer of names that V8, CPython and HotSpot add to their maps, other than the app's methods.
fn of_vm(name: &str, hotspot: Hotspot) -> Option<Layer> {
    if let Some(function) = name.strip_prefix("JS:") {
        // Node's built-in modules: `JS:*readFileSync node:fs:424:22`.
        return function.contains(" node:").then_some(Layer::Framework);
    }
    if let Some(function) = name.strip_prefix("py::") {
        return is_python_library(function).then_some(Layer::Framework);
    }
    let of_v8 = ["Builtin:", "BytecodeHandler:", "Stub:", "Script:"];
    let is_v8 = of_v8.iter().any(|prefix| name.starts_with(prefix));
    let is_stub = hotspot == Hotspot::Possible && is_hotspot(name);
    (is_v8 || is_stub).then_some(Layer::Vm)
}

/// Returns true if a Python function, `name:file`, is in the standard library.
fn is_python_library(function: &str) -> bool {
    let Some((_, file)) = function.split_once(':') else {
        return false;
    };
    let installed = ["/site-packages/", "/dist-packages/"];
    let is_installed = installed.iter().any(|folder| file.contains(folder));
    let is_library = ["/lib/python3", "/lib64/python3"];
    let is_library = is_library.iter().any(|folder| file.contains(folder));
    file.starts_with("<frozen ") || is_library && !is_installed
}

/// Returns true if HotSpot uses this name for a stub or buffer (`CodeCache::write_perf_map`, the names of `BufferBlob`s
/// and stubs).
fn is_hotspot(name: &str) -> bool {
    /// Buffers and stubs without a common suffix.
    const NAMED: [&str; 14] = [
        "Interpreter",
        "adapters",
        "native signature handlers",
        "call_stub",
        "resolve_virtual_call",
        "resolve_static_call",
        "resolve_opt_virtual_call",
        "g1_pre_barrier_slow",
        "g1_post_barrier_slow",
        "forward exception",
        "delayed StackOverflowError throw_exception",
        "predicate_failed_trap",
        "nmethod_entry_barrier",
        "MethodHandlesAdapterBlob",
    ];
    const ENDS: [&str; 8] = [
        "Blob",
        " stub",
        "_stub",
        " adapters",
        "_Java",
        " blob",
        "Stub",
        " handlers",
    ];
    const STARTS: [&str; 5] = [
        "StubRoutines (",
        "RuntimeStub - ",
        "Runtime1 ",
        "jni_fast_Get",
        "vtable ",
    ];
    // Method names have a dot after the class.
    !name.contains('.')
        && (NAMED.contains(&name)
            || ENDS.iter().any(|end| name.ends_with(end))
            || STARTS.iter().any(|start| name.starts_with(start)))
}

/// Returns the class and method in a Java method's name with dots or slashes: `void java.util.HashMap.clear()`,
/// `java/util/HashMap.clear` and `Ljava/util/HashMap;clear()V`. None for names of other languages.
fn java_method(name: &str) -> Option<&str> {
    let method = name.split_once('(').map_or(name, |(method, _)| method);
    let method = method.rsplit(' ').next()?;
    let is_descriptor = method.starts_with('L') && method.contains(';');
    let method = match is_descriptor {
        true => method.strip_prefix('L')?,
        false => method,
    };
    let is_part = |char: char| char.is_alphanumeric() || "_$./;<>-+".contains(char);
    (method.contains(['.', ';']) && method.chars().all(is_part)).then_some(method)
}

/// Returns true if a method's class has a package and starts with a capital letter. This is Java's convention; names of
/// other languages differ.
fn has_package(method: &str) -> bool {
    let mut parts = method.split(['.', '/', ';']).peekable();
    let is_package = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(char::is_lowercase)
            && part
                .chars()
                .all(|char| char.is_alphanumeric() || char == '_')
    };
    let mut packages = 0_usize;
    while parts.next_if(|part| is_package(part)).is_some() {
        packages = packages.saturating_add(1);
    }
    let is_class = parts
        .next()
        .is_some_and(|class| class.starts_with(|first: char| first.is_uppercase()));
    packages > 0 && is_class && parts.next().is_some_and(|name| !name.is_empty())
}

/// Returns the layer of a Java method. Classes of the JDK belong to the framework.
fn of_java(method: &str) -> Layer {
    /// Only the JDK's part of `com.sun`, which other libraries such as JNA also use.
    const JDK: [&str; 10] = [
        "java.",
        "javax.",
        "jdk.",
        "sun.",
        "com.sun.crypto.",
        "com.sun.net.",
        "com.sun.org.",
        "com.sun.jndi.",
        "com.sun.security.",
        "com.sun.proxy.",
    ];
    let dotted = method.replace('/', ".");
    match JDK.iter().any(|package| dotted.starts_with(package)) {
        true => Layer::Framework,
        false => Layer::App,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jit_s_names_tell_whose_code_it_is() {
        for (name, expected) in [
            ("Interpreter", Layer::Vm),
            ("StubRoutines (1)", Layer::Vm),
            ("UncommonTrapBlob", Layer::Vm),
            ("RuntimeStub - _new_array_Java", Layer::Vm),
            ("_complete_monitor_locking_Java", Layer::Vm),
            ("monitorenter Runtime1 stub", Layer::Vm),
            ("vtable stub", Layer::Vm),
            ("I2C/C2I adapters", Layer::Vm),
            ("jni_fast_GetIntField", Layer::Vm),
            ("wrong_method_stub", Layer::Vm),
            ("BytecodeHandler:LdaZero", Layer::Vm),
            ("Builtin:MapPrototypeGet", Layer::Vm),
            ("double H.f(int)", Layer::App),
            ("java.lang.String org.example.Db.readBlob()", Layer::App),
            ("org.example.Interpreter", Layer::App),
            ("void com.sun.jna.Pointer.clear(long)", Layer::App),
            (
                "java.util.HashMap$Node[] java.util.HashMap.resize()",
                Layer::Framework,
            ),
            (
                "java.lang.Object java.util.HashMap.merge(java.lang.Object, java.lang.Object)",
                Layer::Framework,
            ),
            ("java/lang/Thread.run", Layer::Framework),
            ("Ljava/util/HashMap;clear()V", Layer::Framework),
            ("Lorg/example/App;mul(I)D", Layer::App),
            (
                "jdk.internal.misc.Unsafe.getReferenceAcquire(java.lang.Object, long)",
                Layer::Framework,
            ),
            ("JS:*work /home/x/hot.js:4:14", Layer::App),
            ("JS:~readSync node:fs:712:18", Layer::Framework),
            ("py::busy:/home/x/busy.py", Layer::App),
            (
                "py::loads:/usr/lib/python3.12/json/__init__.py",
                Layer::Framework,
            ),
            ("py::_find:<frozen importlib._bootstrap>", Layer::Framework),
            (
                "py::get:/venv/lib/python3.12/site-packages/requests/api.py",
                Layer::App,
            ),
            ("mul", Layer::App),
        ] {
            let found = layer(name, "[jit]", Layer::App, Hotspot::Possible);
            assert_eq!(found, expected, "{name}");
        }
        for name in ["Interpreter", "parse_stub", "readBlob"] {
            let found = layer(name, "[jit]", Layer::App, Hotspot::Absent);
            assert_eq!(found, Layer::App, "{name}");
        }
    }

    #[test]
    fn a_java_method_of_folded_stacks_is_no_native_function() {
        for (name, expected) in [
            ("java/lang/Thread.run", Layer::Framework),
            ("org/example/App.main", Layer::App),
            ("org.example.App.main", Layer::App),
            ("org.example.App$$Lambda$14/0x0000000800.run", Layer::App),
            ("main", Layer::Native),
            ("unmap_page_range.isra.0", Layer::Native),
            ("net/http.(*conn).serve", Layer::Native),
            ("encoding/json.Marshal", Layer::Native),
            ("runtime.mallocgc", Layer::Native),
            ("std::vector<int>::push_back(int const&)", Layer::Native),
            ("JavaMain", Layer::Native),
            ("run (app.py:12)", Layer::Native),
        ] {
            let found = layer(name, "[native]", Layer::Native, Hotspot::Possible);
            assert_eq!(found, expected, "{name}");
        }
        let of_kernel = layer(
            "java/lang/Thread.run",
            "[kernel]",
            Layer::Kernel,
            Hotspot::Possible,
        );
        assert_eq!(of_kernel, Layer::Kernel);
        let of_library = layer(
            "java/lang/Thread.run",
            "[heap]",
            Layer::Native,
            Hotspot::Possible,
        );
        assert_eq!(of_library, Layer::Native);
    }
}
