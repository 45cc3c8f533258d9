//! Do the workloads compute the same in compiled code of ART 11? Runs of `golden.txt`, in each way that code comes to run.

use anyhow::{Result, bail, ensure};
use varid_tests::{App, Code, Scale, scale};

/// The runs whose results are known, those of a method by the number of its rounds: lines of PACKAGE METHOD N RESULT.
const GOLDEN: &str = include_str!("../../workloads/golden.txt");

#[test]
fn compiled_workloads_give_the_results_of_their_models() -> Result<()> {
    let (codes, runs) = match scale() {
        Scale::Gate => (&[Code::Image][..], shortest()),
        Scale::Long => (&Code::COMPILED[..], GOLDEN.lines().collect()),
    };
    for code in codes {
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

/// The shortest run of each method.
fn shortest() -> Vec<&'static str> {
    let mut runs: Vec<&str> = GOLDEN.lines().collect();
    runs.dedup_by_key(|run| run.split(' ').take(2).collect::<Vec<_>>());
    runs
}
