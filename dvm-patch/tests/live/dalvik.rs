//! Dalvik's hooks are inserted where they belong, or not at all.
//!
//! Tested on a toy VM that has Dalvik's functions and structures, in C and in C++.

mod vm;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::crate_dir;

/// A generation of Android whose Dalvik differs from the others in the hooked code.
struct Generation {
    name: &'static str,
    ext: &'static str,
    /// Source files with their hooks.
    hooks: &'static [(&'static str, &'static [&'static str])],
    makefiles: &'static [&'static str],
}

const INIT: (&str, &[&str]) = ("Init", &["running", "shutdown"]);
const THREAD: (&str, &[&str]) = ("Thread", &["thread_start", "thread_exit"]);
const CLASS: (&str, &[&str]) = ("oo/Class", &["class", "class_gone"]);
const PROFILE: (&str, &[&str]) = ("Profile", &["invoke"]);
const COMPILER: (&str, &[&str]) = ("compiler/Compiler", &["jit", "jit_reset"]);

const GENERATIONS: &[Generation] = &[
    Generation {
        name: "1.6",
        ext: "c",
        hooks: &[INIT, THREAD, CLASS, PROFILE],
        makefiles: &["Android.mk"],
    },
    Generation {
        name: "2.0 or 2.1",
        ext: "c",
        hooks: &[
            INIT,
            THREAD,
            CLASS,
            PROFILE,
            ("compiler/Compiler", &["jit"]),
        ],
        makefiles: &["Android.mk", "Dvm.mk"],
    },
    Generation {
        name: "2.2 or 2.3",
        ext: "c",
        hooks: &[INIT, THREAD, CLASS, PROFILE, COMPILER],
        makefiles: &["Android.mk", "Dvm.mk", "ReconfigureDvm.mk"],
    },
    Generation {
        name: "4.x",
        ext: "cpp",
        hooks: &[
            INIT,
            THREAD,
            CLASS,
            PROFILE,
            COMPILER,
            ("compiler/Frontend", &["jit"]),
            ("interp/Interp", &["thread_modes"]),
        ],
        makefiles: &["Android.mk", "Dvm.mk", "ReconfigureDvm.mk"],
    },
];

impl Generation {
    /// Creates the VM's sources of this generation.
    fn tree(&self, dir: &Path) -> PathBuf {
        let toy = crate_dir().join("tests/programs/dalvik");
        let vm = dir.join("vm");
        for folder in ["oo", "compiler", "interp"] {
            std::fs::create_dir_all(vm.join(folder)).unwrap();
        }
        std::fs::copy(toy.join("Dalvik.h"), vm.join("Dalvik.h")).unwrap();
        for file in [
            "Init",
            "Thread",
            "oo/Class",
            "Profile",
            "compiler/Compiler",
            "Main",
        ] {
            let mut text = std::fs::read_to_string(toy.join(format!("{file}.c"))).unwrap();
            if file == "compiler/Compiler" && self.name == "2.0 or 2.1" {
                text = text.replace("resetCodeCache", "makeRoom");
            }
            std::fs::write(vm.join(format!("{file}.{}", self.ext)), text).unwrap();
        }
        if self.ext == "cpp" {
            for file in ["compiler/Frontend", "interp/Interp"] {
                let made = vm.join(format!("{file}.cpp"));
                std::fs::copy(toy.join(format!("{file}.c")), made).unwrap();
            }
        }
        for makefile in self.makefiles {
            let text = match *makefile {
                "Android.mk" => "LOCAL_SRC_FILES := Init.c\ninclude $(BUILD_SHARED_LIBRARY)\n",
                _ => "LOCAL_SRC_FILES := Init.c\n",
            };
            std::fs::write(vm.join(makefile), text).unwrap();
        }
        vm
    }
}

/// Runs apply.sh, with a folder at the start of its PATH.
fn apply(tree: &Path, tools: &Path) -> Output {
    let path = std::env::var("PATH").unwrap();
    // A shell can't trap signals that it inherited as ignored, as in the background.
    Command::new("env")
        .arg("--default-signal=HUP,INT,QUIT,PIPE,TERM")
        .arg(crate_dir().join("dalvik/apply.sh"))
        .arg(tree)
        .env("PATH", format!("{}:{path}", tools.display()))
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns every file and folder below this one, with its contents.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
                found.push((path, Vec::new()));
            } else {
                let bytes = std::fs::read(&path).unwrap();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_hook_goes_in_once_and_no_line_is_lost() {
    for generation in GENERATIONS {
        let dir = tempfile::tempdir().unwrap();
        let vm = generation.tree(dir.path());
        let before = contents(&vm);
        let output = apply(dir.path(), dir.path());
        let told = said(&output);
        assert!(output.status.success(), "{}: {told}", generation.name);
        assert!(
            told.contains(&format!("Android {}: patched", generation.name)),
            "{told}"
        );
        let mut hooked = 0;
        for (file, hooks) in generation.hooks {
            let text =
                std::fs::read_to_string(vm.join(format!("{file}.{}", generation.ext))).unwrap();
            for hook in *hooks {
                let call = format!("varid_dalvik_{hook}(");
                assert_eq!(
                    text.matches(&call).count(),
                    1,
                    "{}: {file}: {hook}",
                    generation.name
                );
                hooked += 1;
            }
        }
        let mut calls = 0;
        for (path, bytes) in &before {
            if path.is_dir() {
                continue;
            }
            let after = std::fs::read_to_string(path).unwrap();
            let mut lines = after.lines();
            for line in std::str::from_utf8(bytes).unwrap().lines() {
                assert!(
                    lines.any(|other| other == line),
                    "{}: lost: {line}",
                    path.display()
                );
            }
            calls += after.matches("varid_dalvik_").count();
        }
        assert_eq!(calls, hooked, "{}", generation.name);

        let patched = contents(&vm);
        let again = apply(dir.path(), dir.path());
        assert!(!again.status.success(), "patched twice");
        assert!(said(&again).contains("is patched"), "{}", said(&again));
        assert!(
            contents(&vm) == patched,
            "the second time changed something"
        );
    }
}

/// Damages to a source: a text and its replacement.
fn damages(ext: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut damages = vec![
        ("Init", "dvmInitAfterZygote(void)\n", "dvmInitLater(void)\n"),
        ("Init", "dvmShutdown(void)\n", "dvmEnd(void)\n"),
        ("Init", "#include \"Dalvik.h\"", "#include \"./Dalvik.h\""),
        ("Thread", "prepareThread", "makeThread"),
        ("Thread", "return true;", "return 1 == 1;"),
        ("Thread", "return false;", "return true;"),
        ("Thread", "freeThread", "dropThread"),
        ("oo/Class", "loadClassFromDex0", "loadClass"),
        (
            "oo/Class",
            "made->sourceFile = \"Toy.java\";",
            "made->sourceFile = \"\";\n\tmade->sourceFile = \"Toy.java\";",
        ),
        (
            "oo/Class",
            "dvmFreeClassInnards(ClassObject",
            "dvmFree(ClassObject",
        ),
        ("Profile", "dvmMethodTraceAdd", "dvmTrace"),
    ];
    if ext == "cpp" {
        damages.extend([
            ("compiler/Compiler", "resetCodeCache", "makeRoom"),
            (
                "compiler/Compiler",
                "\tdvmJitResetTable();",
                "\tinstalled = 0;",
            ),
            (
                "compiler/Compiler",
                "\tdvmJitResetTable();",
                "\tdvmJitResetTable();\n\tdvmJitResetTable();",
            ),
            (
                "compiler/Compiler",
                "dvmJitSetCodeAddr(pc, at",
                "install(pc, at",
            ),
            ("compiler/Frontend", "dvmJitSetCodeAddr", "install"),
            (
                "interp/Interp",
                "dvmInitializeInterpBreak",
                "dvmInitializeBreaks",
            ),
        ]);
    }
    damages
}

#[test]
fn a_hook_that_is_missing_or_fits_twice_leaves_the_tree_as_it_was() {
    for generation in [&GENERATIONS[0], &GENERATIONS[3]] {
        let refuse = |what: &str, file: &str, change: &dyn Fn(&str) -> String| {
            let dir = tempfile::tempdir().unwrap();
            let vm = generation.tree(dir.path());
            let path = vm.join(format!("{file}.{}", generation.ext));
            let text = std::fs::read_to_string(&path).unwrap();
            let changed = change(&text);
            assert!(changed != text, "{file} has no {what}");
            std::fs::write(&path, changed).unwrap();
            let before = contents(&vm);
            let output = apply(dir.path(), dir.path());
            assert!(!output.status.success(), "{file}: {what}: applied");
            assert!(said(&output).contains(file), "{}", said(&output));
            assert!(contents(&vm) == before, "{file}: {what}: changed");
        };
        for (file, from, to) in damages(generation.ext) {
            refuse(from, file, &|text| text.replace(from, to));
        }
        // Each file's functions are duplicated, as by an #else branch.
        for (file, _) in generation.hooks {
            refuse("twice", file, &|text| {
                let body = text.split_once("#include \"Dalvik.h\"\n").unwrap().1;
                format!("{text}\n#ifdef OTHER\n{body}\n#endif\n")
            });
        }
    }
}

#[test]
fn a_failure_or_a_signal_while_files_change_is_undone() {
    let generation = &GENERATIONS[3];
    for death in [
        "exit 1",
        "kill -TERM $PPID",
        "kill -INT $PPID",
        "kill -HUP $PPID",
        "kill -QUIT $PPID",
        "kill -PIPE $PPID",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let vm = generation.tree(&dir.path().join("tree"));
        let before = contents(&vm);
        // It writes each file by cat, which fails for the third file.
        let tools = dir.path().join("tools");
        std::fs::create_dir(&tools).unwrap();
        let calls = dir.path().join("calls");
        let script = format!(
            "#!/bin/sh\necho >>{calls}\n[ $(wc -l <{calls}) -lt 3 ] || {death}\nexec /bin/cat \"$@\"\n",
            calls = calls.display()
        );
        let cat = tools.join("cat");
        std::fs::write(&cat, script).unwrap();
        let chmod = Command::new("chmod").arg("+x").arg(&cat).status().unwrap();
        assert!(chmod.success());
        let output = apply(&dir.path().join("tree"), &tools);
        assert!(!output.status.success(), "{death}: applied");
        assert!(
            calls.exists(),
            "{death}: never came to it: {}",
            said(&output)
        );
        assert!(said(&output).contains("is as it was"), "{}", said(&output));
        assert!(contents(&vm) == before, "{death}: changed");
    }
}

#[test]
fn the_glue_and_dim_compile_for_the_arm_of_those_devices() {
    let compiler = "arm-linux-gnueabihf-gcc";
    if Command::new(compiler).arg("--version").output().is_err() {
        println!("skipped: no {compiler} here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let vm = GENERATIONS[0].tree(dir.path());
    let output = apply(dir.path(), dir.path());
    assert!(output.status.success(), "{}", said(&output));
    // As 1.6 is compiled, except for soft floats: for ARMv5 and for ARMv7.
    for machine in ["-march=armv5te", "-march=armv7-a"] {
        let built = Command::new(compiler)
            .args([machine, "-marm", "-mfloat-abi=soft", "-ffreestanding"])
            .args(["-std=gnu89", "-O2", "-Wall", "-Wextra", "-Werror"])
            .args(["-DDIM_NO_SHADOW", "-r", "-nostdlib", "-o", "/dev/null"])
            .args(["base.c", "dim.c", "files.c"].map(|file| vm.join("varid").join(file)))
            .status()
            .unwrap();
        assert!(built.success(), "{machine}: dim");
    }
    for file in [
        "varid/varid_dalvik.c",
        "Init.c",
        "Thread.c",
        "oo/Class.c",
        "Profile.c",
    ] {
        let built = Command::new(compiler)
            .args(["-std=gnu89", "-O2", "-Wall", "-Wextra", "-Werror"])
            .args(["-DDIM_NO_SHADOW", "-c", "-o", "/dev/null", "-I"])
            .args([&vm, &vm.join(file)])
            .status()
            .unwrap();
        assert!(built.success(), "{file}");
    }
}
