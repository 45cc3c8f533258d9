//! The guides in the program.

/// A guide's name and text. `docs` beside the sources is a link, so that a package of this crate contains the guides.
macro_rules! guide {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../docs/guide-", $name, ".md")),
        )
    };
}

/// The guides' names and texts in Markdown.
pub const GUIDES: &[(&str, &str)] = &[
    guide!("installing"),
    guide!("profile-an-app"),
    guide!("top"),
    guide!("reading-a-report"),
    guide!("annotating"),
    guide!("comparing"),
    guide!("html-report"),
    guide!("exporting"),
    guide!("importing"),
    guide!("node-python"),
    guide!("off-cpu"),
    guide!("exact"),
    guide!("estimate"),
    guide!("firmware"),
    guide!("calibrate"),
    guide!("events"),
    guide!("configuration"),
    guide!("device"),
    guide!("android-generations"),
    guide!("naming-addresses"),
    guide!("kernel-module"),
    guide!("board"),
    guide!("troubleshooting"),
];

#[cfg(test)]
mod tests {
    use super::GUIDES;

    #[test]
    fn every_guide_of_the_docs_is_in_the_program() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
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
