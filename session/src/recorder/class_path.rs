//! Where does a Java program have its classes? As its command line says it.

use std::path::{Path, PathBuf};
use varid_model::Pid;
use varid_process::reader;

/// Options of `java` that end with a class path or a module path.
const PATHS: [&str; 5] = ["-cp", "-classpath", "--class-path", "-p", "--module-path"];
/// Options of `java` with a value in the next argument.
const WITH_VALUE: [&str; 8] = [
    "--add-exports",
    "--add-modules",
    "--add-opens",
    "--add-reads",
    "--limit-modules",
    "--patch-module",
    "--source",
    "--upgrade-module-path",
];
/// The environment variable with the class path of programs whose command line has none.
const VARIABLE: &str = "CLASSPATH";
/// Maximum number of entries of a process.
const MAX_ENTRIES: usize = 1 << 10;

/// Returns the folders and archives of a process's classes. Relative ones are below its folder. A `*` at the end stands for all jars there.
pub fn of_process(pid: Pid) -> Vec<PathBuf> {
    let strings = |file: &str| {
        let contents = reader::contents(pid, file).unwrap_or_default();
        let strings = contents.split(|byte| *byte == 0);
        let strings = strings.map(|one| String::from_utf8_lossy(one).into_owned());
        strings.collect::<Vec<_>>()
    };
    let environment = strings("environ");
    let mut variables = environment.iter();
    let variable = variables.find_map(|one| one.strip_prefix(VARIABLE)?.strip_prefix('='));
    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    let entries = of_command(&strings("cmdline"), variable);
    entries
        .iter()
        .take(MAX_ENTRIES)
        .map(|entry| folder.join(Path::new(entry)))
        .collect()
}

/// Returns the entries of the class path and of the module path of `java` with these arguments, its own name first.
fn of_command(arguments: &[String], variable: Option<&str>) -> Vec<String> {
    let mut paths: Vec<&str> = Vec::new();
    let mut has_class_path = false;
    let mut arguments = arguments.iter().skip(1).map(String::as_str);
    while let Some(argument) = arguments.next() {
        if argument == "-jar" {
            // Other class paths do not count.
            return arguments.next().map(str::to_owned).into_iter().collect();
        }
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (argument, None),
        };
        if PATHS.contains(&option) {
            has_class_path |= !matches!(option, "-p" | "--module-path");
            paths.extend(value.or_else(|| arguments.next()));
        } else if WITH_VALUE.contains(&argument) {
            arguments.next();
        } else if !argument.starts_with('-') || argument == "-m" || argument == "--module" {
            break;
        }
    }
    if !has_class_path {
        paths.push(variable.unwrap_or("."));
    }
    let entries = paths.iter().flat_map(|path| path.split(':'));
    entries
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_path_is_that_of_the_launcher_s_rules() {
        for (command, variable, expected) in [
            (
                "java -cp classes:lib/a.jar org.example.App -cp x",
                None,
                &["classes", "lib/a.jar"][..],
            ),
            (
                "java -Xmx1g --class-path=a --add-opens java.base/java.lang=ALL-UNNAMED -classpath b Main",
                None,
                &["a", "b"],
            ),
            ("java -cp x -jar app.jar -cp y", Some("z"), &["app.jar"]),
            (
                "java --module-path mods:libs -m org.example/org.example.App",
                None,
                &["mods", "libs", "."],
            ),
            ("java Main", None, &["."]),
            ("java -ea Main", Some("one::two/*"), &["one", "two/*"]),
            ("java -cp", None, &[]),
            ("", None, &["."]),
        ] {
            let arguments: Vec<_> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(of_command(&arguments, variable), expected, "{command}");
        }
    }

    #[test]
    fn the_entries_of_a_process_are_below_its_folder() {
        // The test's own command line has no class path.
        let entries = of_process(Pid::new(std::process::id()));
        let folder = std::env::current_dir().unwrap();
        assert!(
            entries.iter().all(|entry| entry.is_absolute()),
            "{entries:?}"
        );
        if std::env::var_os(VARIABLE).is_none() {
            assert_eq!(entries, [folder.join(".")]);
        }
    }
}
