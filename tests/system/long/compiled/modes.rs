//! Tests that each sample of a compiled app is correct, in all modes of compilation and sampling.

use anyhow::Result;
use varid_tests::{
    Code, DexFormat, Release, Scale, Source, every_mode_is_right, scale, skip_without_root,
};

fn judge(release: Release, code: Code) -> Result<()> {
    if skip_without_root("modes") {
        return Ok(());
    }
    let enough = match scale() {
        Scale::Gate => 5000,
        Scale::Long => 20_000,
    };
    every_mode_is_right(release, code, &[Source::Bpf, Source::Copies], enough)
}

#[test]
fn the_jit_of_art_11() -> Result<()> {
    judge(Release::Art11, Code::Jit)
}

#[test]
fn a_boot_image_of_art_11() -> Result<()> {
    judge(Release::Art11, Code::Image)
}

#[test]
fn an_odex_of_art_11() -> Result<()> {
    judge(Release::Art11, Code::Odex(DexFormat::Compact))
}

#[test]
fn an_odex_and_the_jit_of_art_11() -> Result<()> {
    judge(Release::Art11, Code::Mixed)
}

#[test]
fn the_jit_of_art_14() -> Result<()> {
    judge(Release::Art14, Code::Jit)
}

#[test]
fn an_odex_of_art_14() -> Result<()> {
    judge(Release::Art14, Code::Odex(DexFormat::Compact))
}
