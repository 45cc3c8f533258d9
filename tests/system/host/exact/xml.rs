//! Compares the tree in XML with other exports of the same session.

use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use varid_tests::{judge, printed, testbed};

/// Checks that a tree in XML conforms to its schema, and that an oracle finds in it the stacks and sums of folded stacks and the contexts of
/// the metrics.
pub fn ensure_xml(folder: &Path, session: &Path) -> Result<()> {
    let export = |format: &str, options: &[&str]| -> Result<std::path::PathBuf> {
        let file = folder.join(format!("{format}{}", options.concat()));
        let mut varid = testbed()?.varid();
        varid.args(["export", "-f", format]).args(options);
        printed(varid.arg("-i").arg(session).arg("-o").arg(&file))?;
        Ok(file)
    };
    let xml = export("xml", &[])?;
    let calls = export("folded", &["--signatures", "--measure", "calls"])?;
    let bytecodes = export("folded", &["--signatures", "--measure", "bytecodes"])?;
    let metrics = folder.join("contexts.json");
    let mut varid = testbed()?.varid();
    varid.args(["metrics", "--section", "contexts", "--format", "json", "-i"]);
    fs::write(&metrics, printed(varid.arg(session))?)?;
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats/contexts.xsd");
    let mut lint = Command::new("xmllint");
    lint.args(["--huge", "--noout", "--schema"]).arg(schema);
    printed(lint.arg(&xml))?;
    let found = judge("contexts_xml.py", [xml, calls, bytecodes, metrics])?;
    ensure!(found["contexts"].as_u64() > Some(0), "{found}");
    Ok(())
}
