//! Are rewritten files valid in the eyes of the symbolizer's reader, which knows nothing of the rewriter?

use crate::{Entries, NotRewritten, Plan, Rewritten, RuntimeClass, rewrite};
use proptest::prelude::*;
use varid_instrument::{Body, Counted, MethodNumber};
use varid_symbolizer::dex::DexFile;

const NAMES: &[u8] = include_bytes!("../../symbolizer/tests/fixtures/names.dex");
/// All kinds of items: annotations, call sites, method handles, values, switches, debug information.
const ITEMS: &[u8] = include_bytes!("../../symbolizer/tests/fixtures/items.dex");
/// Methods that share a code_item.
const SHARED: &[u8] = include_bytes!("../../symbolizer/tests/fixtures/shared.dex");

fn rewritten(dex: &[u8], counted: Counted) -> Result<Rewritten, NotRewritten> {
    let entries = Entries::Inline;
    let plan = Plan { counted, entries };
    rewrite(dex, plan, MethodNumber::FIRST, RuntimeClass::Added)
}

/// Reads the names of a file's methods, with the lines of those that have code, in the order of the lines.
fn methods(dex: &[u8]) -> Vec<(String, Vec<u32>)> {
    let dex = DexFile::parse(dex).unwrap();
    let mut found = Vec::new();
    for method in dex.methods() {
        let method = method.unwrap();
        let mut lines = Vec::new();
        if let Some(code) = method.method_code() {
            for instruction in dex.disassemble(&code) {
                let text = instruction.unwrap().to_string();
                assert!(!text.contains("?>"), "{text}");
            }
            dex.tries(&code).unwrap().for_each(|one| drop(one.unwrap()));
            let table = dex.lines(&code).unwrap();
            assert!(table.problem().is_none());
            lines = table.rows().iter().map(|row| row.line).collect();
            lines.dedup();
        }
        let id = &method.id;
        found.push((
            format!("{}{}", id.display_name().unwrap(), id.descriptor().unwrap()),
            lines,
        ));
    }
    found.sort();
    found
}

#[test]
fn a_rewritten_file_has_all_methods_with_their_lines_and_the_runtime_class() {
    for dex in [NAMES, ITEMS, SHARED] {
        for counted in [Counted::Calls, Counted::Blocks] {
            let new = rewritten(dex, counted).unwrap();
            let mut found = methods(&new.bytes);
            found.retain(|(name, _)| !name.starts_with("varid.Tree."));
            assert_eq!(found, methods(dex));
            assert_eq!(methods(&new.bytes).len(), found.len() + 3);
            let of_classes = new.classes.iter().map(|class| class.methods.len());
            assert_eq!(of_classes.sum::<usize>(), found.len());
        }
    }
}

#[test]
fn methods_that_share_code_are_counted_apart() {
    let new = rewritten(SHARED, Counted::Calls).unwrap();
    let dex = DexFile::parse(&new.bytes).unwrap();
    let codes = dex
        .methods()
        .filter_map(|method| method.unwrap().method_code());
    let mut starts: Vec<u32> = codes.map(|code| code.code.start).collect();
    let count = starts.len();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), count);
    let counted = new.classes.iter().flat_map(|class| &class.methods);
    assert_eq!(
        counted.filter(|one| one.body == Body::Counted).count(),
        count
    );
}

#[test]
fn a_file_is_rewritten_once_and_a_second_one_has_no_runtime_class() {
    let new = rewritten(NAMES, Counted::Calls).unwrap();
    assert_eq!(
        rewritten(&new.bytes, Counted::Calls),
        Err(NotRewritten::IsRewritten)
    );
    let first = MethodNumber::new(1000).unwrap();
    let plan = Plan {
        counted: Counted::Calls,
        entries: Entries::Called,
    };
    let other = rewrite(NAMES, plan, first, RuntimeClass::Elsewhere).unwrap();
    assert_eq!(methods(&other.bytes), methods(NAMES));
    let numbers = other.classes.iter().chain(&other.others);
    let numbers = numbers.flat_map(|class| class.methods.iter().map(|one| one.number.get()));
    assert!(numbers.eq(1000..1000 + other.all_methods()));
}

/// A file of which two classes have the same members defines more than it names, and cannot be read again.
#[test]
fn classes_with_the_same_members_are_refused() {
    let word = |dex: &[u8], at: usize| u32::from_le_bytes(*dex[at..].first_chunk().unwrap());
    let [count, table] = [0x60, 0x64].map(|at| word(ITEMS, at) as usize);
    let data = |class: usize| table + 32 * class + 24;
    let mut refused = 0;
    for (one, other) in (0..count).flat_map(|one| (0..count).map(move |other| (one, other))) {
        let mut dex = ITEMS.to_vec();
        dex.copy_within(data(other)..data(other) + 4, data(one));
        match rewritten(&dex, Counted::Calls) {
            Ok(new) => {
                let dex = DexFile::parse(&new.bytes).unwrap();
                assert!(dex.methods().all(|method| method.is_ok()));
            }
            Err(error) => {
                assert!(error.to_string().contains("class_data_item"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

impl Rewritten {
    fn all_methods(&self) -> u32 {
        let all = self.classes.iter().chain(&self.others);
        all.map(|class| u32::try_from(class.methods.len()).unwrap())
            .sum()
    }
}

proptest! {
    #[test]
    fn whatever_a_file_holds_what_is_written_can_be_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        blocks in any::<bool>(),
        items in any::<bool>(),
    ) {
        let mut dex = if items { ITEMS } else { SHARED }.to_vec();
        for (at, byte) in changes {
            let at = at.index(dex.len());
            dex[at] = byte;
        }
        let counted = if blocks { Counted::Blocks } else { Counted::Calls };
        if let Ok(new) = rewritten(&dex, counted) {
            let dex = DexFile::parse(&new.bytes).unwrap();
            for code in dex.methods().filter_map(|method| method.unwrap().method_code()) {
                for instruction in dex.disassemble(&code) {
                    instruction.unwrap();
                }
                dex.tries(&code).unwrap().for_each(|one| drop(one.unwrap()));
            }
        }
    }
}
