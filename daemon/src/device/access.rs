//! The user that runs a command on the device.

use super::shell::quote;

/// The user that runs a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// adb's own user: the shell, or root after `adb root`.
    Adb,
    /// Root, by one of the forms of `su` that take a script as their argument.
    Su(&'static str),
    /// The user of a debuggable app.
    RunAs(String),
}

impl Access {
    /// Wraps a script so that adb's own user can run it.
    pub fn wrap(&self, script: &str) -> String {
        match self {
            Self::Adb => script.to_owned(),
            Self::Su(form) => format!("{form} {}", quote(script)),
            Self::RunAs(package) => format!("run-as {} sh -c {}", quote(package), quote(script)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_one_word_to_whoever_runs_it() {
        let script = "echo 'a b'; exit 3";
        assert_eq!(Access::Adb.wrap(script), script);
        assert_eq!(
            Access::Su("su -c").wrap(script),
            r#"su -c 'echo '\''a b'\''; exit 3'"#
        );
        assert_eq!(
            Access::RunAs("org.example".into()).wrap("id"),
            "run-as org.example sh -c id"
        );
    }
}
