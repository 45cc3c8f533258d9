//! Which guides are in the program?

/// Their names, and what they say in Markdown.
pub const GUIDES: &[(&str, &str)] = &[
    (
        "installing",
        include_str!("../../../../docs/guide-installing.md"),
    ),
    (
        "profile-an-app",
        include_str!("../../../../docs/guide-profile-an-app.md"),
    ),
    (
        "reading-a-report",
        include_str!("../../../../docs/guide-reading-a-report.md"),
    ),
    (
        "comparing",
        include_str!("../../../../docs/guide-comparing.md"),
    ),
    (
        "html-report",
        include_str!("../../../../docs/guide-html-report.md"),
    ),
    (
        "exporting",
        include_str!("../../../../docs/guide-exporting.md"),
    ),
    ("events", include_str!("../../../../docs/guide-events.md")),
    (
        "configuration",
        include_str!("../../../../docs/guide-configuration.md"),
    ),
    ("device", include_str!("../../../../docs/guide-device.md")),
    (
        "android-generations",
        include_str!("../../../../docs/guide-android-generations.md"),
    ),
    (
        "naming-addresses",
        include_str!("../../../../docs/guide-naming-addresses.md"),
    ),
    (
        "kernel-module",
        include_str!("../../../../docs/guide-kernel-module.md"),
    ),
    ("board", include_str!("../../../../docs/guide-board.md")),
    (
        "troubleshooting",
        include_str!("../../../../docs/guide-troubleshooting.md"),
    ),
];

#[cfg(test)]
mod tests {
    use super::GUIDES;

    #[test]
    fn every_guide_of_the_docs_is_in_the_program() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
        let files = std::fs::read_dir(docs).unwrap();
        let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut guides: Vec<_> = files
            .filter_map(|file| {
                let name = file.strip_prefix("guide-")?.strip_suffix(".md")?;
                Some(name.to_owned())
            })
            .collect();
        let mut known: Vec<_> = GUIDES.iter().map(|(name, _)| *name).collect();
        guides.sort();
        known.sort_unstable();
        assert_eq!(guides, known);
    }
}
