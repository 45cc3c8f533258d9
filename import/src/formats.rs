//! The list of import formats.

use crate::{
    convert, flight_recording, folded, format::ImportFormat, perf_script, start::SourceStart,
};

/// All formats, in the order of detection and of listings.
static FORMATS: &[&ImportFormat] = &[
    &convert::READER,
    &flight_recording::READER,
    &perf_script::READER,
    &folded::READER,
];

impl ImportFormat {
    /// Returns all formats.
    #[must_use]
    pub fn all() -> &'static [&'static Self] {
        FORMATS
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let mut formats = FORMATS.iter().copied();
        formats.find(|format| format.name == name)
    }

    /// Detects the format of a source from its first bytes. None if the format is unknown.
    #[must_use]
    pub fn detect(start: &[u8]) -> Option<&'static Self> {
        let start = SourceStart::new(start);
        let mut formats = FORMATS.iter().copied();
        formats.find(|format| (format.recognises)(&start))
    }
}

/// Returns the formats for the error about an unknown source: "neither A nor B or C".
pub(crate) fn neither() -> String {
    let nouns: Vec<&str> = FORMATS.iter().map(|format| format.noun).collect();
    let nouns = nouns.join(" or ").replacen(" or ", " nor ", 1);
    format!("neither {nouns}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../docs/guide-importing.md");

    #[test]
    fn a_format_is_known_by_its_content() {
        for (start, format) in [
            (&b"PERFILE2\x68\0"[..], Some("perf-data")),
            (
                b"# header\nprog 12/13 [001]  5.123456:   1 cycles:u: \n\t  4005 main+0x5 (/bin/a)\n",
                Some("perf-script"),
            ),
            (
                b"some prog   12  5.123456: cpu-clock: \n\t  4005 main (/bin/a)\n",
                Some("perf-script"),
            ),
            (b"main;f;g_[k] 12\nmain;h 3\n", Some("folded")),
            (b"main 12", Some("folded")),
            (b"\xef\xbb\xbfw 5/5 1.000000: cycles:\n\t1000 a (/x)\n", Some("perf-script")),
            (
                b"java 12 cpu-clock:\n\t4005 work (/bin/a)\n",
                Some("perf-script"),
            ),
            (b"main;f 3\nodd\nmain;g 2\n", Some("folded")),
            // Many unrelated files have one or two lines that end in a number.
            (b"hello there\nworld 3\n", None),
            (b"version = 3\n\n[[package]]\nname = \"a\"\nchapter 12\n", None),
            (b"the worker took 12\nthe other one 15\n", None),
            (b"Note 12 items:\nand more\n", None),
            (b"events: Ir\nfn=main;a\n16;a 20\n17;b 30\n18;c 30\n", None),
            (b"FLR\0\0\x02\0\x01", Some("jfr")),
            (b"\x7fELF\x02\x01", None),
            (b"", None),
        ] {
            let found = ImportFormat::detect(start).map(|format| format.name);
            assert_eq!(found, format, "{start:?}");
        }
    }

    #[test]
    fn each_format_is_found_by_its_name() {
        for format in ImportFormat::all() {
            let named = ImportFormat::named(format.name).unwrap();
            assert!(std::ptr::eq(named, *format), "{format:?}");
        }
        assert!(ImportFormat::named("html").is_none());
    }

    /// The guide's table has a row for each program whose recordings are read differently.
    #[test]
    fn the_guide_s_table_has_the_formats_of_the_list() {
        let rows = GUIDE
            .lines()
            .skip_while(|line| !line.starts_with("| format |"));
        let rows = rows.skip(2).map_while(|line| line.strip_prefix("| `"));
        let mut names: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
        names.dedup();
        let known = ImportFormat::all().iter().map(|format| format.name);
        assert_eq!(names, known.collect::<Vec<_>>());
    }
}
