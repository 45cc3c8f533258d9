//! Tests that the workloads compute the same results in compiled code of ART 11, for the runs of `golden.txt` and each
//! kind of code.

use anyhow::{Result, bail, ensure};
use varid_tests::{App, Code};

/// The runs with known results, which depend on a method's number of rounds: lines of PACKAGE METHOD N RESULT.
const GOLDEN: &str = include_str!("../../workloads/golden.txt");

#[test]
fn compiled_workloads_give_the_results_of_their_models() -> Result<()> {
    let runs: Vec<_> = GOLDEN.lines().collect();
    for code in &Code::COMPILED {
        let mut wrong = Vec::new();
        for run in &runs {
            let [name, method, rounds, expected] = run.split(' ').collect::<Vec<_>>()[..] else {
                bail!("golden.txt: not PACKAGE METHOD N RESULT: {run}");
            };
            let app = App::new(name, method, rounds.parse()?)?.executed_by(*code)?;
            let output = app.command().output()?;
            let printed = String::from_utf8_lossy(&output.stdout);
            if printed.trim_end() != expected {
                let error = String::from_utf8_lossy(&output.stderr);
                wrong.push(format!("{run}: {printed}{error}"));
            }
        }
        println!(
            "art11: {code:?}: {} results, {} wrong",
            runs.len(),
            wrong.len()
        );
        ensure!(wrong.is_empty(), "{code:?}: {wrong:#?}");
    }
    Ok(())
}
