//! Do the workloads compute the same in compiled code of ART 11? Every run of `golden.txt`, in each way that code comes to run.

use anyhow::{Result, ensure};
use varid_tests::{App, Code};

/// The runs whose results are known: lines of PACKAGE METHOD N RESULT.
const GOLDEN: &str = include_str!("../../workloads/golden.txt");

#[test]
fn compiled_workloads_give_the_results_of_their_models() -> Result<()> {
    for code in Code::COMPILED {
        let mut wrong = Vec::new();
        for run in GOLDEN.lines() {
            let [name, method, rounds, expected] = run.split(' ').collect::<Vec<_>>()[..] else {
                anyhow::bail!("not PACKAGE METHOD N RESULT: {run}");
            };
            let app = App::new(name, method, rounds.parse()?)?.executed_by(code)?;
            let output = app.command().output()?;
            let printed = String::from_utf8_lossy(&output.stdout);
            if printed.trim_end() != expected {
                let error = String::from_utf8_lossy(&output.stderr);
                wrong.push(format!(
                    "{name} {method} {rounds}: {printed}{error}, not {expected}"
                ));
            }
        }
        println!(
            "art11: {code:?}: {} results, {} wrong",
            GOLDEN.lines().count(),
            wrong.len()
        );
        ensure!(wrong.is_empty(), "{code:?}: {wrong:#?}");
    }
    Ok(())
}
