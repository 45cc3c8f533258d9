//! Rewrites class files for a VM without the agent: `rewrite FROM TO [--blocks] [--tree ADDRESS] [--start CLASS]`.
//!
//! FROM and TO are folders as `jimage extract` and `--patch-module` have them for one module. The runtime class is put there, too, for a tree at
//! ADDRESS (hexadecimal), and `java/lang/Thread` gets its field. Recording begins at the method `main` of CLASS. Prints what stayed as it was.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use varid_instrument::{
    Body, Counted, Intrinsics, MethodNumber, MethodReference, Plan, TreeAddress, rewrite, runtime,
    runtime_class, thread_class,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|it| it == name)?;
        arguments.get(at.checked_add(1)?)
    };
    let [from, to, ..] = arguments.as_slice() else {
        panic!("usage: rewrite FROM TO [--blocks] [--tree ADDRESS] [--start CLASS]");
    };
    let (from, to) = (Path::new(from), Path::new(to));
    let blocks = arguments.iter().any(|it| it == "--blocks");
    let plan = Plan {
        counted: if blocks {
            Counted::Blocks
        } else {
            Counted::Calls
        },
        intrinsics: Intrinsics::Leaves,
        start: option("--start").map(|class| MethodReference {
            class: class.clone(),
            name: "main".to_owned(),
            descriptor: "([Ljava/lang/String;)V".to_owned(),
        }),
        within: None,
    };
    let mut files = Vec::new();
    class_files(from, &mut files);
    files.sort();
    let mut number = MethodNumber::FIRST;
    let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
    let (mut before, mut after) = (0_usize, 0_usize);
    for path in &files {
        let mut class = std::fs::read(path).unwrap();
        let relative = path.strip_prefix(from).unwrap();
        before = before.saturating_add(class.len());
        if relative == Path::new("java/lang/Thread.class") {
            class = thread_class(&class).unwrap();
        }
        match rewrite(&class, &plan, number) {
            Ok(rewritten) => {
                number = number.after(rewritten.methods.len()).unwrap();
                for method in &rewritten.methods {
                    let count = bodies.entry(format!("{:?}", method.body)).or_default();
                    *count = count.saturating_add(1);
                    if matches!(method.body, Body::Plain(_)) {
                        println!(
                            "{:?}: {}.{}{}",
                            method.body, rewritten.class, method.name, method.descriptor
                        );
                    }
                }
                class = rewritten.bytes;
            }
            Err(error) => println!("{}: {error}", relative.display()),
        }
        after = after.saturating_add(class.len());
        write(&to.join(relative), &class);
    }
    if let Some(tree) = option("--tree") {
        let tree = u64::from_str_radix(tree.trim_start_matches("0x"), 16).unwrap();
        write(
            &to.join(runtime::CLASS).with_extension("class"),
            &runtime_class(TreeAddress(tree), &plan),
        );
    }
    println!(
        "{} classes, {before} bytes before, {after} after; methods: {bodies:?}",
        files.len()
    );
}

fn class_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            class_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "class")
            && path.file_name().is_some_and(|it| it != "module-info.class")
        {
            found.push(path);
        }
    }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}
