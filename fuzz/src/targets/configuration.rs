//! A configuration is not trusted. Errors have a position in the text, valid settings survive being written and read,
//! and matching a pattern takes at most the product of the lengths of pattern and name.

use crate::bounded;
use varid_session::config;

/// The parser holds tokens, a tree, and a second copy of each name.
const PER_BYTE: usize = 512;

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let event = |text: &str| match text.contains('!') {
        true => Err("no event".to_owned()),
        false => Ok(()),
    };
    bounded(bytes, PER_BYTE, || match config::parse(text, event) {
        Ok(config) => {
            let written = config::to_toml(&config);
            assert_eq!(
                config::parse(&written, event),
                Ok(config.clone()),
                "{written}"
            );
            for method in ["", "a.B.c", "org.example.Balls.draw"] {
                let _ = config.settings.methods.verdict(method);
            }
            for service in config.known_services() {
                let _ = config.processes_of(service);
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            let lines = text.matches('\n').count() + 1;
            for problem in problems {
                assert!(problem.line <= lines && problem.column > 0, "{problem}");
            }
        }
    });
}
