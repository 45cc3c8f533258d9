//! Which methods may HotSpot's compilers replace by code of their own?

use crate::class::{Constants, Method, Reader};
use crate::error::Result;

/// HotSpot's annotation of methods that its compilers know, in versions since 16 and before.
const CANDIDATE: [&[u8]; 2] = [
    b"Ljdk/internal/vm/annotation/IntrinsicCandidate;",
    b"Ljdk/internal/HotSpotIntrinsicCandidate;",
];

/// Candidates that the compilers know without replacing them, and through which programs call their own methods.
const NOT_REPLACED: [(&[u8], &[u8]); 3] = [
    (b"java/lang/reflect/Method", b"invoke"),
    (
        b"java/util/stream/Streams$RangeIntSpliterator",
        b"forEachRemaining",
    ),
    (b"jdk/internal/vm/Continuation", b"enter"),
];

/// Classes whose candidates the VM itself executes otherwise than by their bytecode, or needs as they are: references are read with the barriers of
/// the collector, and the bodies of continuations only throw.
const OF_VM: [&[u8]; 3] = [
    b"java/lang/ref/Reference",
    b"java/util/zip/CRC32C",
    b"jdk/internal/vm/Continuation",
];

/// Candidates for which HotSpot's interpreter, too, has machine code: those of `java.lang.Math` that compute a `double`, and others.
const OF_INTERPRETER: [(&[u8], &[u8]); 3] = [
    (b"java/lang/Math", b"fma"),
    (b"java/lang/Float", b"float16ToFloat"),
    (b"java/lang/Float", b"floatToFloat16"),
];
const MATH: &[u8] = b"java/lang/Math";
const OF_INTERPRETER_IN_MATH: [&[u8]; 12] = [
    b"abs", b"cbrt", b"cos", b"exp", b"log", b"log10", b"pow", b"sin", b"sinh", b"sqrt", b"tan",
    b"tanh",
];

/// Annotations in annotations are read up to this depth.
const DEPTH: u8 = 8;

/// The attribute with the annotations that HotSpot reads.
pub(crate) const ANNOTATIONS: &[u8] = b"RuntimeVisibleAnnotations";

/// What HotSpot may execute in place of a method's bytecode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Nothing.
    None,
    /// Machine code of its compilers, because of the annotation.
    ByCompilers,
    /// Other code, with or without the annotation.
    ByVm,
}

/// Returns what HotSpot may execute in place of the bytecode of a method of the class `class`.
pub(crate) fn replacement(
    class: &[u8],
    method: &Method<'_>,
    constants: &Constants<'_>,
) -> Replacement {
    let of = (class, method.name);
    let annotations = method.attribute(ANNOTATIONS);
    let is_candidate = annotations
        .is_some_and(|it| others(it.data, constants).is_ok_and(|others| others.count < others.all));
    if !is_candidate || NOT_REPLACED.contains(&of) {
        return Replacement::None;
    }
    let is_double = method.descriptor.ends_with(b")D");
    let is_math_intrinsic =
        class == MATH && is_double && OF_INTERPRETER_IN_MATH.contains(&method.name);
    match OF_VM.contains(&class) || OF_INTERPRETER.contains(&of) || is_math_intrinsic {
        true => Replacement::ByVm,
        false => Replacement::ByCompilers,
    }
}

/// Returns the contents of a method's [`ANNOTATIONS`] without HotSpot's annotation. None: they cannot be read.
///
/// Without the annotation, HotSpot's compilers compile the method's bytecode. The VM then prints a line on each method when it loads the class,
/// which `-XX:-DisplayVMOutput` suppresses.
pub(crate) fn without_candidate(
    annotations: Reader<'_>,
    constants: &Constants<'_>,
) -> Option<Vec<u8>> {
    let others = others(annotations, constants).ok()?;
    let count = others.count.to_be_bytes();
    Some(count.into_iter().chain(others.bytes).collect())
}

/// The annotations of a method but HotSpot's.
struct Others {
    /// The number of all annotations.
    all: u16,
    /// The number of these.
    count: u16,
    bytes: Vec<u8>,
}

fn others(mut reader: Reader<'_>, constants: &Constants<'_>) -> Result<Others> {
    let all = reader.u16("num_annotations")?;
    let mut others = Others {
        all,
        count: 0,
        bytes: Vec::new(),
    };
    for _ in 0..all {
        let before = reader;
        let mut name = reader;
        let name = constants.utf8(name.u16("type_index")?);
        skip_annotation(&mut reader, DEPTH)?;
        if name.is_none_or(|name| !CANDIDATE.contains(&name)) {
            let length = reader.offset().saturating_sub(before.offset());
            others
                .bytes
                .extend(before.rest().get(..length).unwrap_or_default());
            others.count = others.count.saturating_add(1);
        }
    }
    Ok(others)
}

fn skip_annotation(reader: &mut Reader<'_>, depth: u8) -> Result<()> {
    reader.u16("type_index")?;
    for _ in 0..reader.u16("num_element_value_pairs")? {
        reader.u16("element_name_index")?;
        skip_value(reader, depth)?;
    }
    Ok(())
}

fn skip_value(reader: &mut Reader<'_>, depth: u8) -> Result<()> {
    let deeper = depth
        .checked_sub(1)
        .ok_or_else(|| reader.error("element_value", "it is nested too deeply"))?;
    match reader.u8("tag")? {
        b'e' => reader.u32("enum_const_value").map(drop),
        b'@' => skip_annotation(reader, deeper),
        b'[' => {
            for _ in 0..reader.u16("num_values")? {
                skip_value(reader, deeper)?;
            }
            Ok(())
        }
        _ => reader.u16("const_value_index").map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_but_that_of_hotspot_stay() {
        let name = CANDIDATE[0];
        let mut pool = vec![0, 4];
        for text in [name, b"Ljava/lang/Deprecated;", b"since"] {
            pool.extend([1, 0, u8::try_from(text.len()).unwrap()]);
            pool.extend(text);
        }
        let constants = Constants::read(&mut Reader::new(&pool, 0)).unwrap();
        // The second one has a pair: its name, and an array of one string.
        let other = [0, 2, 0, 1, 0, 3, b'[', 0, 1, b's', 0, 3];
        let mut both = vec![0, 2, 0, 1, 0, 0];
        both.extend(other);
        let found = without_candidate(Reader::new(&both, 0), &constants);
        let mut expected = vec![0, 1];
        expected.extend(other);
        assert_eq!(found, Some(expected));
        for cut in 0..both.len() {
            let cut = both.get(..cut).unwrap();
            assert_eq!(without_candidate(Reader::new(cut, 0), &constants), None);
        }
    }
}
