//! As whom a command runs on the device.

use super::shell::quote;

/// As whom a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// adb's own user: the shell, or root after `adb root`.
    Adb,
    /// Root, by one of the forms of `su` that take a script behind them.
    Su(&'static str),
    /// The user of an app that says it is debuggable.
    RunAs(String),
}

impl Access {
    /// A script as it is handed to adb's own user.
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
