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

/// Annotations in annotations are read up to this depth.
const DEPTH: u8 = 8;

/// Returns true if HotSpot's compilers may replace the code of a method of the class `class` by their own.
pub(crate) fn is_replaced(class: &[u8], method: &Method<'_>, constants: &Constants<'_>) -> bool {
    if NOT_REPLACED.contains(&(class, method.name)) {
        return false;
    }
    method
        .attribute(b"RuntimeVisibleAnnotations")
        .is_some_and(|it| has_candidate(it.data, constants) == Ok(true))
}

fn has_candidate(mut reader: Reader<'_>, constants: &Constants<'_>) -> Result<bool> {
    for _ in 0..reader.u16("num_annotations")? {
        let mut name = reader;
        let name = constants.utf8(name.u16("type_index")?);
        if name.is_some_and(|name| CANDIDATE.contains(&name)) {
            return Ok(true);
        }
        skip_annotation(&mut reader, DEPTH)?;
    }
    Ok(false)
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
