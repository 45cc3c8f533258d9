//! Is each sample of an interpreted app right, however it is interpreted and sampled?

use anyhow::{Result, ensure};
use varid_tests::{Mode, Scale, Source, scale, skip_without_root};

#[test]
fn stacks_of_interpreted_code_end_where_threads_begin_and_name_what_is_executed() -> Result<()> {
    if skip_without_root("modes") {
        return Ok(());
    }
    let (enough, sources) = match scale() {
        Scale::Gate => (5000, &[Source::Bpf][..]),
        Scale::Long => (20_000, &[Source::Bpf, Source::Copies][..]),
    };
    let mut wrong = Vec::new();
    for mode in sources.iter().flat_map(|source| Mode::interpreted(*source)) {
        wrong.extend(mode.wrong(enough)?);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}
