//! Tests that no mapping file makes its reader panic, run for too long or return unbounded results.

use crate::common;

use proptest::prelude::*;
use varid_symbolizer::retrace::{Mapping, Position};

/// Calls everything. The results must be bounded.
fn exercise(bytes: &[u8]) {
    let Ok(mapping) = Mapping::parse(bytes.to_vec()) else {
        return;
    };
    for class in ["a", "b", "org.example.Main", "", "a.a"] {
        let _ = mapping.class(class);
        for method in ["a", "main", "<init>", ""] {
            for line in [0, 7, 1042, u32::MAX]
                .map(Position::Line)
                .map(Some)
                .into_iter()
                .chain([None, Some(Position::Pc(7))])
            {
                for params in [None, Some(""), Some("int,a[][]")] {
                    let all = mapping.alternatives(class, method, line, params);
                    assert!(all.len() <= 64 && all.iter().all(|one| one.len() <= 256));
                    assert!(all.iter().all(|one| !one.is_empty()));
                }
            }
        }
    }
}

#[test]
fn a_broken_mapping_file_is_read_as_far_as_it_goes() {
    let path = common::fixtures().join("retrace/optimized.mapping");
    let mut original = std::fs::read(path).unwrap();
    original.extend(
        b"# {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"([La;I)V\"}\n",
    );
    for length in 0..original.len() {
        exercise(&original[..length]);
    }
    let mut numbers = common::Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4_000 {
        let mut bytes = original.clone();
        for _ in 0..=numbers.below(6) {
            let at = numbers.below(bytes.len() as u64) as usize;
            let with = b"\n :->.,()[]\"#{}0129\xff\xc3az";
            bytes[at] = with[numbers.below(with.len() as u64) as usize];
        }
        exercise(&bytes);
    }
}

/// Hundreds of thousands of methods with the same name: one lookup returns a bounded result.
#[test]
fn methods_without_end_are_answered_in_bounds() {
    let mut many = String::from("# compiler: R8\nA -> a:\n");
    for number in 0..200_000 {
        many += &format!("    1:1:void m{number}():0:65535 -> a\n");
    }
    for number in 0..200_000 {
        many += &format!("    void n{number}() -> b\n");
    }
    let mapping = Mapping::parse(many.into()).unwrap();
    assert_eq!(
        mapping
            .frames("a", "a", Some(Position::Line(1)), None)
            .len(),
        256
    );
    assert_eq!(mapping.alternatives("a", "b", None, None).len(), 64);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn mapping_files_of_any_text(text in "a -> b:\n(( {4}|)([0-9]{1,3}:[0-9]{1,3}:|)(void |)[a.b]{1,4}(\\([a,]{0,4}\\)|)(:[0-9]{1,2}){0,2} -> [ab]:?\n){0,12}") {
        exercise(text.as_bytes());
    }

    #[test]
    fn mapping_files_of_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        exercise(&[b"a -> b:\n", &bytes[..]].concat());
    }
}
