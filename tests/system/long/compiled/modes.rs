//! Is each sample of a compiled app right, however it is compiled and sampled?

use anyhow::{Result, ensure};
use varid_tests::{Mode, Scale, scale, skip_without_root};

#[test]
fn stacks_of_compiled_code_end_where_threads_begin_and_name_what_is_executed() -> Result<()> {
    if skip_without_root("modes") {
        return Ok(());
    }
    let enough = match scale() {
        Scale::Gate => 5000,
        Scale::Long => 20_000,
    };
    let mut wrong = Vec::new();
    for mode in Mode::compiled() {
        wrong.extend(mode.wrong(enough)?);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}
