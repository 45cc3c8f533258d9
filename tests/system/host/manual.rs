//! Tests that man and shells accept the manual and the completions, and that the guides come from `varid help`.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use varid_tests::{printed, skipped, testbed};

/// Returns true, with a message, if a program is missing.
fn skip_without(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        skipped("manual", &format!("{program} is not installed"));
    }
    !found
}

#[test]
fn manual_pages_are_what_man_and_its_index_take() -> Result<()> {
    let folder = tempfile::tempdir()?;
    printed(testbed()?.varid().arg("man-pages").arg(folder.path()))?;
    let mut pages: Vec<_> = fs::read_dir(folder.path())?
        .map(|page| Ok(page?.path()))
        .collect::<Result<_>>()?;
    pages.sort();
    for page in ["varid.1", "varid-diff.1", "varid-config-check.1"] {
        ensure!(
            pages.contains(&folder.path().join(page)),
            "{page} is not in {pages:?}"
        );
    }
    ensure!(
        !pages.contains(&folder.path().join("varid-launch.1")),
        "{pages:?}"
    );
    for page in &pages {
        if !skip_without("mandoc") {
            // Style and the system's own pages are not checked, only errors of syntax.
            printed(
                Command::new("mandoc")
                    .args(["-T", "lint", "-W", "warning"])
                    .arg(page),
            )?;
        }
        if !skip_without("man") {
            let mut man = Command::new("man");
            man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
                .arg(page);
            let output = man.env("MANROFFSEQ", "").output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(
                output.status.success() && said.is_empty(),
                "{page:?}: {said}"
            );
        }
        if !skip_without("lexgrog") {
            let name = page.file_stem().context("no name")?.to_string_lossy();
            let entry = printed(Command::new("lexgrog").arg(page))?;
            ensure!(entry.contains(&format!("\"{name} - ")), "{entry}");
        }
    }
    Ok(())
}

/// An unambiguous prefix of a verb.
const BEGIN: &str = "rep";

fn script(shell: &str, path: &Path) -> Result<()> {
    let script = printed(testbed()?.varid().args(["completions", shell]))?;
    Ok(fs::write(path, script)?)
}

#[test]
fn bash_completes_a_verb_and_its_options() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("varid");
    script("bash", &path)?;
    let complete = |words: &str| {
        let last = words.split(' ').count() - 1;
        let line = format!(
            ". {}; COMP_WORDS=({words}); COMP_CWORD={last}; _varid varid \"${{COMP_WORDS[-1]}}\" varid; echo \"${{COMPREPLY[@]}}\"",
            path.display()
        );
        printed(Command::new("bash").args(["--norc", "-c", &line]))
    };
    ensure!(complete(&format!("varid {BEGIN}"))? == "report\n");
    ensure!(complete("varid diff --agai")? == "--against\n");
    Ok(())
}

#[test]
fn fish_completes_a_verb_and_its_options() -> Result<()> {
    if skip_without("fish") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("varid.fish");
    script("fish", &path)?;
    let complete = |line: &str| {
        let line = format!("source {}; complete -C '{line}'", path.display());
        printed(Command::new("fish").args(["--no-config", "-c", &line]))
    };
    let verbs = complete(&format!("varid {BEGIN}"))?;
    ensure!(
        verbs.starts_with("report\t") && verbs.lines().count() == 1,
        "{verbs}"
    );
    let options = complete("varid diff --agai")?;
    ensure!(options.starts_with("--against\t"), "{options}");
    Ok(())
}

#[test]
fn zsh_completes_a_verb() -> Result<()> {
    if skip_without("zsh") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    script("zsh", &folder.path().join("_varid"))?;
    let oracle = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/zsh_completes.py");
    let mut python = Command::new("python3");
    let begun = format!("varid {BEGIN}");
    python
        .args(["-B", oracle])
        .arg(folder.path())
        .args([&begun, "varid report "]);
    printed(&mut python).map(drop)
}

/// Makes a folder with two sessions in varid's places, one with an app's name, and a name that a shell could execute.
fn sessions() -> Result<tempfile::TempDir> {
    let home = tempfile::tempdir()?;
    for name in ["first-scene", "second-$(touch run)"] {
        let folder = home.path().join("sessions").join(name);
        fs::create_dir_all(&folder)?;
        for file in ["session.json", "perf.data"] {
            fs::write(folder.join(file), "")?;
        }
    }
    Ok(home)
}

#[test]
fn shells_offer_sessions_events_and_topics() -> Result<()> {
    let (folder, home) = (tempfile::tempdir()?, sessions()?);
    let varid = testbed()?.varid();
    let path = folder.path().join("varid.bash");
    script("bash", &path)?;
    let complete = |line: &str| {
        let program = varid.get_program().to_string_lossy();
        let line = format!(
            ". {}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; _varid_values {program} x x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            path.display()
        );
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", &line])
            .env("VARID_HOME", home.path());
        printed(bash.current_dir(folder.path()))
    };
    ensure!(complete("varid report fi")? == "first-scene\n");
    ensure!(complete("varid report -i fi")? == "first-scene\n");
    ensure!(complete("varid export --input=fi")? == "first-scene\n");
    ensure!(complete("varid diff first-scene se")? == "second-\\$\\(touch\\ run\\)\n");
    ensure!(
        !folder.path().join("run").exists(),
        "a session's name was run"
    );
    ensure!(complete("varid record -e cpu-cl")? == "cpu-clock\n");
    ensure!(complete("varid help comp")?.contains("comparing\n"));
    ensure!(
        complete("varid repo")? == "\n",
        "that is the other function's"
    );
    if !skip_without("fish") {
        let path = folder.path().join("varid.fish");
        script("fish", &path)?;
        let at = Path::new(varid.get_program())
            .parent()
            .context("no folder")?;
        for (line, expected) in [
            ("varid report fi", "first-scene"),
            ("varid report -i fi", "first-scene"),
            ("varid record -e cpu-cl", "cpu-clock"),
            ("varid help comparing", "comparing"),
        ] {
            let line = format!("source {}; complete -C '{line}'", path.display());
            let mut fish = Command::new("fish");
            fish.args(["--no-config", "-c", &line])
                .env("VARID_HOME", home.path());
            let path = std::env::var("PATH")?;
            fish.env("PATH", format!("{}:{path}", at.display()));
            let offered = printed(&mut fish)?;
            ensure!(
                // A description follows.
                offered
                    .lines()
                    .any(|line| line.split('\t').next() == Some(expected)),
                "{line}: {offered}"
            );
        }
    }
    if !skip_without("zsh") {
        script("zsh", &folder.path().join("_varid"))?;
        let oracle = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/zsh_completes.py");
        let at = Path::new(varid.get_program())
            .parent()
            .context("no folder")?;
        for (begun, completed) in [
            ("varid report fi", "varid report first-scene "),
            ("varid export -i fi", "varid export -i first-scene "),
            ("varid help compari", "varid help comparing "),
        ] {
            let mut python = Command::new("python3");
            python.args(["-B", oracle]).arg(folder.path());
            let path = std::env::var("PATH")?;
            python.env("PATH", format!("{}:{path}", at.display()));
            python.env("VARID_HOME", home.path());
            printed(python.args([begun, completed]).current_dir(folder.path()))?;
        }
    }
    Ok(())
}

#[test]
fn what_is_installed_has_no_symbols_and_runs() -> Result<()> {
    let prefix = tempfile::tempdir()?;
    let varid = testbed()?.varid();
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/install.sh");
    let mut install = Command::new(scripts);
    printed(install.arg(varid.get_program()).arg(prefix.path()))?;
    let installed = prefix.path().join("bin/varid");
    let sections = printed(Command::new("readelf").args(["-SW"]).arg(&installed))?;
    ensure!(!sections.contains(".symtab"), "{sections}");
    ensure!(printed(Command::new(&installed).arg("--version"))?.starts_with("varid "));
    Ok(())
}

#[test]
fn help_prints_verbs_and_guides() -> Result<()> {
    let help = |topic: &[&str]| printed(testbed()?.varid().arg("help").args(topic));
    let list = help(&[])?;
    for word in ["Commands:", "diff", "Guides", "comparing"] {
        ensure!(list.contains(word), "no {word}: {list}");
    }
    ensure!(help(&["config", "check"])?.contains("Usage: varid config check"));
    let guide = help(&["comparing"])?;
    ensure!(
        guide.starts_with("Compare sessions\n=====") && guide.contains("--fail-if-slower"),
        "{guide}"
    );
    // If a verb and a guide have the same name, both are shown. An unambiguous prefix suffices.
    for (topic, guide) in [
        ("events", "Choose events\n===="),
        ("top", "Watch what runs\n===="),
    ] {
        let both = help(&[topic])?;
        ensure!(
            both.contains(&format!("Usage: varid {topic}")) && both.contains(guide),
            "{both}"
        );
    }
    ensure!(help(&["profile"])?.starts_with("Profile an app\n===="));
    for (topic, says) in [
        ("nothing", "'varid help' lists both"),
        ("reprot", "did you mean 'report'?"),
        ("re", "'re' may be reading-a-report, record, report"),
    ] {
        let output = testbed()?.varid().args(["help", topic]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(1) && said.contains(says),
            "{said}"
        );
    }
    Ok(())
}
