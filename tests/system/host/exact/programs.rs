//! Java programs that are counted, by varid and by the oracle.

use super::counts::{Counts, readable};
use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use varid_tests::{JDK, compile_agent, has_jdk, printed, skipped, testbed};

/// A program whose main class is in the folder of compiled classes. Its own methods are those of classes whose names begin with that name.
pub struct Program {
    pub class: &'static str,
    pub arguments: &'static [&'static str],
    /// The threads whose calls do not depend on time.
    pub threads: &'static [&'static str],
    /// Parts of contexts that are not compared.
    pub left_out: &'static [&'static str],
}

/// Calls of all kinds.
pub const CONTEXTS: Program = Program {
    class: "Contexts",
    arguments: &["25"],
    threads: &["main", "worker-0", "worker-1", "worker-2"],
    left_out: &[],
};
/// Exceptions of all kinds.
pub const STEPS: Program = Program {
    class: "Steps",
    arguments: &["12"],
    threads: &["main", "worker-0", "worker-1", "worker-2", "worker-3"],
    left_out: &[],
};
/// The example of the paper on JP2.
pub const AREAS: Program = Program {
    class: "Areas",
    arguments: &[],
    threads: &["main"],
    left_out: &[],
};
/// Class files that no compiler makes.
pub const UGLY: Program = Program {
    class: "Ugly",
    arguments: &[],
    threads: &["main"],
    // There is no room for counters in their methods.
    left_out: &[":UglyLarge65535.run", ":UglyLocals.run"],
};

/// Returns true if there is nothing to test.
pub fn skip() -> bool {
    let skip = !has_jdk();
    if skip {
        skipped("exact", "there is no openjdk-17-jdk-headless");
    }
    skip
}

/// Returns `varid exact` with options.
pub fn varid(options: &[&str], session: &Path) -> Result<Command> {
    let mut varid = testbed()?.varid();
    varid.arg("exact").args(options).arg("-o").arg(session);
    Ok(varid)
}

impl Program {
    /// Returns the counts of the oracle, with those of instructions if `steps` is set.
    pub fn oracle(&self, folder: &Path, steps: bool) -> Result<Counts> {
        let agent = compile_agent("contexts", folder)?;
        let file = folder.join("contexts.txt");
        let steps = if steps { ",steps" } else { "" };
        let mut java = Command::new(format!("{JDK}/java"));
        java.args(["-Xint", "-Xshare:off", "-XX:-RewriteFrequentPairs"])
            .arg(format!(
                "-agentpath:{}={},{}{steps}",
                agent.display(),
                self.class,
                file.display()
            ))
            .args(self.on(folder));
        printed(&mut java)?;
        let mut counts = Counts::default();
        let mut context: Option<String> = None;
        for line in fs::read_to_string(&file)?.lines() {
            if let Some(elsewhere) = line.strip_prefix("elsewhere ") {
                ensure!(elsewhere == "0", "{elsewhere} steps of other methods");
            } else if let Some(step) = line.strip_prefix("= ") {
                let (bci, count) = step.split_once(' ').context("a step")?;
                if let Some(context) = &context {
                    counts.add_step(context, bci.parse()?, count.parse()?);
                }
            } else {
                let (count, frames) = line.split_once(' ').context("a line")?;
                let found = normal(frames)?;
                context = counts.add_calls(self, found, count.parse()?);
            }
        }
        Ok(counts)
    }

    /// Counts the program with varid, which must print what it prints without.
    pub fn exact(
        &self,
        folder: &Path,
        session: &Path,
        options: &[&str],
        java: &[&str],
    ) -> Result<()> {
        let output = varid(options, session)?
            .arg("--")
            .arg(format!("{JDK}/java"))
            .args(java)
            .args(self.on(folder))
            .output()?;
        ensure!(output.status.success(), "{output:?}");
        let mut plain = Command::new(format!("{JDK}/java"));
        plain.args(self.on(folder));
        ensure!(
            printed(&mut plain)?.as_bytes() == output.stdout,
            "{output:?}"
        );
        Ok(())
    }

    /// Counts the program with varid, and kills its VM when it has done its work and goes on forever.
    pub fn killed_after_its_work(
        &self,
        folder: &Path,
        session: &Path,
        options: &[&str],
    ) -> Result<()> {
        let mut varid = varid(options, session)?
            .arg("--")
            .arg(format!("{JDK}/java"))
            .args(self.on(folder))
            .arg("forever")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(varid.stdout.take().context("its output")?).lines();
        lines.next().context("the result")??;
        let pid: i32 = lines.next().context("the process")??.parse()?;
        kill(Pid::from_raw(pid), Signal::SIGKILL)?;
        ensure!(varid.wait()?.code() == Some(128 + 9));
        Ok(())
    }

    /// The arguments of `java` for classes in a folder.
    fn on(&self, folder: &Path) -> Vec<PathBuf> {
        let mut arguments = vec!["-cp".into(), folder.to_owned(), self.class.into()];
        arguments.extend(self.arguments.iter().map(PathBuf::from));
        arguments
    }
}

/// Returns a context of the oracle with readable names of classes.
fn normal(context: &str) -> Result<String> {
    let mut frames = context.split('\t');
    let mut normal = frames.next().unwrap_or_default().to_owned();
    for frame in frames {
        let (site, method) = frame.split_once(':').context("a frame")?;
        let name = method.split('(').next().unwrap_or_default();
        let (class, _) = name.rsplit_once('.').context("a method")?;
        let method = method.get(class.len()..).unwrap_or_default();
        normal += &format!("\t{site}:{}{method}", readable(class));
    }
    Ok(normal)
}
