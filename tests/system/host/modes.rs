//! Tests that each sample of an interpreted app is correct, in all modes of interpretation and sampling.

use anyhow::Result;
use varid_tests::{Code, Release, Scale, Source, every_mode_is_right, scale, skip_without_root};

fn judge(release: Release, code: Code) -> Result<()> {
    if skip_without_root("modes") {
        return Ok(());
    }
    let (enough, sources) = match scale() {
        Scale::Gate => (5000, &[Source::Bpf][..]),
        Scale::Long => (20_000, &[Source::Bpf, Source::Copies][..]),
    };
    every_mode_is_right(release, code, sources, enough)
}

#[test]
fn the_interpreter_of_art_11() -> Result<()> {
    judge(Release::Art11, Code::Interpreted)
}

#[test]
fn nterp_of_art_14() -> Result<()> {
    judge(Release::Art14, Code::Interpreted)
}

#[test]
fn the_switch_interpreter_of_art_14() -> Result<()> {
    judge(Release::Art14, Code::Switch)
}
