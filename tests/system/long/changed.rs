//! Tests that varid derives the layout of an unknown build of ART from its library. Its fields have other offsets than
//! in any known build.
#![cfg(target_arch = "x86_64")] // The library is built for x86-64.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::process::Stdio;
use varid_tests::{
    App, ChangedLibart, Libart, Running, interpreted_workloads, judge_runs_in_art, printed, record,
    skip_without_root, testbed,
};
use varid_tunnel::abi::{RULE_LIST, RULE_SIZED};
use varid_vm::LibraryLayout;

/// The compared fields that the additional ones move.
const MOVED: [&str; 11] = [
    "frame_index",
    "frame_insns",
    "frame_link",
    "frame_method",
    "frame_pc",
    "frame_registers",
    "method_code",
    "method_entry",
    "method_index",
    "thread_fragment",
    "thread_tid",
];

/// Returns the fields that a library reveals, by the names of [`varid_tunnel::abi::Layout`], with the frame's
/// registers, to which mterp's register leads, and the rule of compiled code.
fn shown(library: &[u8]) -> Result<BTreeMap<String, u16>> {
    let (layout, _) = LibraryLayout::read(library)?.loaded_at(0, 8);
    let of_kind = |kind| {
        let mut rules = layout.rules.iter().filter(|rule| rule.kind == kind);
        rules
            .next()
            .with_context(|| format!("no rule of kind {kind}"))
    };
    let (list, compiled) = (of_kind(RULE_LIST)?, of_kind(RULE_SIZED)?);
    let fields = [
        ("class_dex_cache", layout.class_dex_cache),
        ("code_cache", compiled.code_cache),
        ("code_cache_map", compiled.code_cache_map),
        ("dex_cache_dex_file", layout.dex_cache_dex_file),
        ("dex_file_begin", layout.dex_file_begin),
        ("fragment_link", layout.fragment_link),
        ("fragment_quick", layout.fragment_quick),
        ("fragment_top", layout.fragment_top),
        ("frame_index", list.frame_index),
        ("frame_insns", list.frame_insns),
        ("frame_link", list.frame_link),
        ("frame_method", list.frame_method),
        ("frame_pc", list.frame_pc),
        ("frame_registers", list.frame_bias.unsigned_abs()),
        ("method_class", layout.method_class),
        ("method_code", layout.method_code),
        ("method_entry", compiled.method_entry),
        ("method_index", layout.method_index),
        ("thread_fragment", layout.thread_fragment),
        ("thread_tid", layout.thread_tid),
    ];
    let named = fields.map(|(name, offset)| (name.to_owned(), offset));
    Ok(named.into_iter().collect())
}

#[test]
fn a_changed_librarys_layout_is_where_its_compiler_has_put_the_fields() -> Result<()> {
    let libart = ChangedLibart::built()?;
    let found = shown(&std::fs::read(libart.path())?)?;
    let compiled = libart.compiled_layout()?;
    ensure!(found == compiled, "{found:#x?}\n{compiled:#x?}");
    let of_debian = shown(&std::fs::read(Libart::KNOWN)?)?;
    let moved = found
        .iter()
        .filter(|(name, offset)| of_debian.get(*name) != Some(offset));
    let moved: Vec<&str> = moved.map(|(name, _)| name.as_str()).collect();
    ensure!(moved == MOVED, "{moved:?}");
    println!("changed: {} fields, {} moved", found.len(), moved.len());
    Ok(())
}

fn in_changed(libart: &ChangedLibart, app: App) -> App {
    let path = libart.path().display().to_string();
    app.options(&["--any-build", "--libart", &path])
}

#[test]
fn every_sample_of_a_changed_build_is_what_the_registers_say() -> Result<()> {
    if skip_without_root("changed") {
        return Ok(());
    }
    let libart = ChangedLibart::built()?;
    let apps = interpreted_workloads()?.into_iter();
    let apps: Vec<App> = apps.map(|app| in_changed(&libart, app)).collect();
    let said = record(&apps[0], &["-F", "997", "-v"])?.stderr();
    ensure!(said.contains(Libart::CHECKED), "{said}");
    let counts = judge_runs_in_art(&apps, 10_000, 20_000)?;
    println!("changed: {counts:?}");
    counts.check("bytecode known", 15, 5)
}

#[test]
fn doctor_says_how_a_changed_build_is_known() -> Result<()> {
    if skip_without_root("changed") {
        return Ok(());
    }
    let libart = ChangedLibart::built()?;
    let app = in_changed(&libart, App::new("truth", "shares", 1_000_000)?);
    let mut app = Running(app.command().stdout(Stdio::null()).spawn()?);
    let place = libart.path().display().to_string();
    let known = format!("{} in process {}", Libart::CHECKED, app.pid());
    loop {
        let doctor = printed(testbed()?.varid().args(["doctor", "--json"]))?;
        let doctor: serde_json::Value = serde_json::from_str(&doctor)?;
        let vms = doctor["vms"].as_array().context("no VMs")?;
        let found = vms.iter().find(|vm| vm["place"] == place.as_str());
        match found.and_then(|vm| vm["what"].as_str()) {
            Some(what) if what.ends_with(&known) => return Ok(()),
            // The process has not begun yet.
            Some(what) if what.contains("there is nothing yet to check it by") => {}
            None => {}
            Some(what) => anyhow::bail!("{what}"),
        }
        ensure!(app.runs()?, "the app has ended before: {doctor}");
    }
}
