//! Are the classes of an installed JDK rewritten so that HotSpot verifies and executes them, and does what they record agree with the program?

#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod jdk;
mod tree;

use jdk::{Jdk, Workspace};
use varid_instrument::{Counted, node};

/// Runs `test` with the installed JDK, or says that there is none.
fn with_jdk(test: impl Fn(&Jdk)) {
    match Jdk::find() {
        Some(jdk) => test(&jdk),
        None => eprintln!("skipped: no javac, jimage and cc are installed"),
    }
}

#[test]
#[ignore = "the long lane runs it: with blocks there is more to verify"]
fn hotspot_verifies_java_base_with_calls() {
    with_jdk(|jdk| {
        let mut workspace = Workspace::new(jdk, Counted::Calls);
        verify_java_base(&mut workspace);
    });
}

#[test]
fn hotspot_verifies_java_base_with_blocks_and_counts_what_the_program_does() {
    with_jdk(|jdk| {
        let mut workspace = Workspace::new(jdk, Counted::Blocks);
        verify_java_base(&mut workspace);
        workspace.rewrite_program("Program.java", &[("Far.java", &far_branches())]);
        workspace.java(&[], &["Program"]);
        check_contexts(&workspace);
    });
}

fn verify_java_base(workspace: &mut Workspace<'_>) {
    let count = workspace.rewrite_java_base();
    workspace.compile("VerifyAll.java", &[]);
    let module = workspace.module().display().to_string();
    let output = workspace.java(
        &[
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+BytecodeVerificationLocal",
            "-XX:+BytecodeVerificationRemote",
        ],
        &["VerifyAll", &module],
    );
    // With the runtime class.
    assert_eq!(output, format!("{} verified, 0 refused\n", count + 1));
}

fn check_contexts(workspace: &Workspace<'_>) {
    let tree = workspace.tree();
    assert_eq!(tree.header(node::header::FOLDED), 0);
    let contexts = tree.contexts(|class| class.starts_with("Program") || class == "Far");
    let (far, near): (Vec<_>, Vec<_>) = contexts
        .iter()
        .partition(|(path, _)| path.ends_with("Far.one"));
    assert_eq!(far.len(), 1_500);
    assert!(far.iter().all(|(_, counts)| counts.calls == 2));
    // What lies between `Method.invoke` and the method that it calls is not the same in all versions.
    let lines: Vec<String> = near
        .iter()
        .filter(|(path, _)| !path.contains("reflect"))
        .map(|(path, counts)| format!("{} {} {path}", counts.calls, counts.bytes))
        .collect();
    let expected: Vec<&str> = include_str!("expected.txt").lines().collect();
    assert_eq!(lines, expected);
}

/// A loop whose conditional branch to its end becomes too far for 16 bits, so that it needs a trampoline.
fn far_branches() -> String {
    let calls = "x = one(x);".repeat(1_500);
    format!(
        "class Far {{
            static int one(int x) {{ return x + 1; }}
            static int loop(int times) {{
                int x = 0;
                for (int i = 0; i < times; i++) {{ {calls} }}
                return x;
            }}
        }}"
    )
}
