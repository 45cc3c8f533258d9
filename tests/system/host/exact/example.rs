//! Tests that the example that the paper on JP2 prints has its tree.

use super::counts::read;
use super::programs::{AREAS, skip};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use varid_tests::compile_class;

/// A context without its thread, with its calls and the instructions that it executed.
type Row = (&'static str, u64, u64);

/// Figure 2, with the positions of figure 1 as bytecode indices: the paper counts instructions from 1. Its compiler made two instructions less
/// than javac 17 before the call of `sumAreas` (position 24, here the 26th instruction, at 35), and one less before the second call in
/// `Composite.area` (position 6, here the seventh, at 14). The polymorphic call is its position 16, at 19, and the first call in `area` its
/// position 3, at 4. Blocks of `sumAreas` ran 1, 4, 1 and 3 times and have 4, 4, 2 and 9 instructions. A square's constructor has six instructions,
/// as in figure 5.
const TREE: [Row; 8] = [
    ("-:Areas.main([Ljava/lang/String;)V", 1, 28),
    ("5:Areas$Square.<init>(F)V", 1, 6),
    (
        "15:Areas$Composite.<init>(LAreas$Shape;LAreas$Shape;)V",
        1,
        9,
    ),
    ("35:Areas.sum([LAreas$Shape;)F", 1, 4 + 4 * 4 + 2 + 3 * 9),
    (
        "35:Areas.sum([LAreas$Shape;)F\t19:Areas$Composite.area()F",
        1,
        12,
    ),
    (
        "35:Areas.sum([LAreas$Shape;)F\t19:Areas$Composite.area()F\t4:Areas$Square.area()F",
        1,
        6,
    ),
    (
        "35:Areas.sum([LAreas$Shape;)F\t19:Areas$Composite.area()F\t14:Areas$Square.area()F",
        1,
        6,
    ),
    (
        "35:Areas.sum([LAreas$Shape;)F\t19:Areas$Square.area()F",
        2,
        12,
    ),
];

#[test]
fn the_example_of_the_paper_has_its_tree() -> Result<()> {
    if skip() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    compile_class(AREAS.class, folder.path())?;
    let session = folder.path().join("session");
    AREAS.exact(folder.path(), &session, &["--bytecodes"], &[])?;
    let counts = read(&session, &AREAS)?;
    let bytecodes = counts.bytecodes();
    let found: BTreeMap<_, _> = counts
        .calls
        .iter()
        .map(|(context, calls)| (context.as_str(), (*calls, bytecodes.get(context).copied())))
        .collect();
    let (main, ..) = TREE[0];
    let row = |(context, calls, executed): &Row| {
        let path = match *context == main {
            true => format!("main\t{main}"),
            false => format!("main\t{main}\t{context}"),
        };
        (path, (*calls, Some(*executed)))
    };
    let expected: BTreeMap<_, _> = TREE.iter().map(row).collect();
    let expected: BTreeMap<_, _> = expected
        .iter()
        .map(|(path, counts)| (path.as_str(), *counts))
        .collect();
    ensure!(found == expected, "{found:#?}");
    Ok(())
}
