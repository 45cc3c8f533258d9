//! Reads the names of tracepoints from the tracing data of a perf.data file.
//!
//! Source: `tools/perf/util/trace-event-info.c`, which writes it.

use std::collections::HashMap;

use varid_model::perf::{Fields, Malformed};

/// The beginning of the tracing data.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The most bytes of a subsystem's name. It is the prefix of the names of its events.
const MAX_NAME: usize = 256;

/// Returns the names of tracepoints, `SYSTEM:NAME`, by id, up to the first part that differs from perf's format.
pub(super) fn names(tracing_data: &[u8]) -> HashMap<u64, String> {
    let mut names = HashMap::new();
    // The names before a problem are used.
    let _ = read(tracing_data, &mut names);
    names
}

fn read(tracing_data: &[u8], names: &mut HashMap<u64, String>) -> Result<(), Malformed> {
    let mut fields = Fields::new(tracing_data);
    let wrong = fields.malformed("it is no tracing data");
    if fields.bytes(MAGIC.len())? != MAGIC {
        return Err(wrong);
    }
    terminated(&mut fields)?; // version
    fields.bytes(1 + 1 + 4)?; // order of bytes, size of a long, of a page
    for _ in ["header_page", "header_event"] {
        terminated(&mut fields)?;
        file(&mut fields)?;
    }
    for _ in 0..fields.u32()? {
        file(&mut fields)?; // of ftrace itself
    }
    for _ in 0..fields.u32()? {
        let system = terminated(&mut fields)?;
        if system.len() > MAX_NAME {
            return Err(wrong);
        }
        for _ in 0..fields.u32()? {
            let format = String::from_utf8_lossy(file(&mut fields)?);
            let value = |key: &str| format.lines().find_map(|line| line.strip_prefix(key));
            let id = value("ID: ").and_then(|id| id.trim().parse().ok());
            if let (Some(name), Some(id)) = (value("name: "), id) {
                names.insert(id, format!("{system}:{}", name.trim()));
            }
        }
    }
    Ok(())
}

/// Reads a NUL-terminated string.
fn terminated(fields: &mut Fields<'_>) -> Result<String, Malformed> {
    let text = String::from_utf8_lossy(fields.text()?).into_owned();
    fields.bytes(1)?;
    Ok(text)
}

/// Reads the content of a file, which follows its size.
fn file<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let long = fields.malformed("a file that is longer than the tracing data");
    let size = usize::try_from(fields.u64()?).map_err(|_| long)?;
    fields.bytes(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_the_formats_before_the_data_ends() {
        let file = |content: &str| {
            let size = (content.len() as u64).to_le_bytes();
            [&size[..], content.as_bytes()].concat()
        };
        let format = |name: &str, id: u32| file(&format!("name: {name}\nID: {id}\nformat:\n"));
        let (one, two) = (1u32.to_le_bytes(), 2u32.to_le_bytes());
        let data = [
            MAGIC,
            b"0.6\0\0\x08\0\x10\0\0header_page\0",
            &file("\tfield: u64 timestamp;"),
            b"header_event\0",
            &file("# compressed entry header"),
            &one,
            &file("name: function\nID: 1\n"),
            &two,
            b"sched\0",
            &two,
            &format("sched_switch", 314),
            &format("sched_wakeup", 318),
            b"probe\0",
            &one,
            &format("open", 2_000),
        ]
        .concat();
        let named = |id: u64, name: &str| (id, name.to_owned());
        let all = [
            named(314, "sched:sched_switch"),
            named(318, "sched:sched_wakeup"),
            named(2_000, "probe:open"),
        ];
        assert_eq!(names(&data), all.into());
        let cut = names(&data[..data.len() - 20]);
        assert_eq!((cut.len(), names(&data[1..]).len()), (2, 0));
    }
}
