//! `varid doctor`: what this machine offers, what varid will use and why, and what would improve it.

mod checks;
mod machine;
mod plan;
mod vms;

use crate::cli::FormatArgs;
use crate::output;
use checks::Check;
use machine::Machine;
use plan::Plan;
use serde::Serialize;
use std::process::ExitCode;
use varid_symbolizer::hex;
use varid_tunnel::builds;
use vms::FoundVm;

#[derive(Serialize)]
struct Document {
    checks: Vec<Check>,
    known_builds: Vec<KnownBuild>,
    vms: Vec<FoundVm>,
    plan: Plan,
}

#[derive(Serialize)]
struct KnownBuild {
    build_id: String,
    name: &'static str,
}

/// Examines the machine and prints the results.
pub fn run(format: FormatArgs) -> anyhow::Result<ExitCode> {
    let machine = Machine::look()?;
    let vms = vms::find();
    let document = Document {
        checks: checks::checks(&machine),
        plan: plan::plan(&machine, &vms),
        known_builds: builds::all()
            .map(|build| KnownBuild {
                build_id: hex(build.build_id()),
                name: build.name(),
            })
            .collect(),
        vms,
    };
    if format.json {
        output::json(&document)?;
    } else {
        output::text(&shown(&document))?;
    }
    if document.plan.source.is_none() {
        eprintln!(
            "varid: nothing can be profiled here as this user; see above for what would help"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(document: &Document) -> String {
    let mut text = "What this machine offers\n".to_owned();
    for check in &document.checks {
        text.push_str(&format!(
            "  {:<8} {:<22} {}\n",
            check.state.name(),
            check.name,
            check.value
        ));
    }
    text.push_str("\nVM builds known without an agent\n");
    for build in &document.known_builds {
        text.push_str(&format!("  {}  {}\n", build.build_id, build.name));
    }
    text.push_str("\nVMs found here\n");
    if document.vms.is_empty() {
        text.push_str("  none; a VM that an app brings along is looked at when it is profiled\n");
    }
    for vm in &document.vms {
        text.push_str(&format!(
            "  {:<8} {}: {}\n",
            vm.state().name(),
            vm.place,
            vm.what
        ));
    }
    text.push_str("\nWhat varid will use\n");
    for line in &document.plan.uses {
        text.push_str(&format!("  {line}\n"));
    }
    if !document.plan.to_improve.is_empty() {
        text.push_str("\nWhat would make it better\n");
        for line in &document.plan.to_improve {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}
