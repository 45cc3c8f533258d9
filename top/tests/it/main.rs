//! The screen is correct for any keys and sizes.
#![cfg(test)] // for the switches of clippy.toml
#![allow(missing_docs, clippy::arithmetic_side_effects)]

mod keys;
mod screen;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;
use varid_model::{Layer, Pid, Tid};
use varid_top::{
    Choice, Details, LineRow, MethodKey, MethodRow, SessionRow, Snapshot, State, Subject,
    ThreadRow, press, ratatui,
};

pub fn method(name: &str, layer: Layer, own: f64, total: f64) -> MethodRow {
    let image = match layer {
        Layer::App => "balls.apk!classes.dex",
        Layer::Framework => "core-oj.jar",
        Layer::Vm => "libart.so",
        Layer::Native => "libskia.so",
        Layer::Kernel => "[kernel]",
    };
    MethodRow {
        key: MethodKey {
            name: name.to_owned(),
            image: image.to_owned(),
            layer,
            inlined: false,
        },
        own,
        total,
    }
}

pub fn snapshot() -> Snapshot {
    let methods = vec![
        method("java.lang.Math.sqrt(double)", Layer::Framework, 10.0, 10.0),
        method("org.example.Balls.draw(int, int)", Layer::App, 43.0, 71.0),
        method("org.example.Balls.run", Layer::App, 0.5, 96.0),
        method(
            "org.example.a.package.with.a.very.long.name.that.fits.nowhere.Balls.method",
            Layer::App,
            20.0,
            20.0,
        ),
        method(
            "art::Thread::Attach(char const*, bool, _jobject*)",
            Layer::Vm,
            5.0,
            5.0,
        ),
        method(
            "evil\x1b]0;title\x07\x1b[2J\u{202e}name",
            Layer::Native,
            1.5,
            1.5,
        ),
        method("sys_read", Layer::Kernel, 20.0, 20.0),
    ];
    let thread = |tid, name: &str, own| ThreadRow {
        pid: Pid::new(100),
        process: "org.example.balls".to_owned(),
        tid: Tid::new(tid),
        name: name.to_owned(),
        own,
    };
    let session = |name: &str, runs| SessionRow {
        folder: format!("/sessions/{name}").into(),
        target: name.to_owned(),
        runs,
    };
    let line = |number, own, total| LineRow {
        place: Some(("org/example/Balls.java".to_owned(), number)),
        own,
        total,
    };
    Snapshot {
        sessions: vec![session("balls", true), session("other\x1b[31m", false)],
        subject: Subject {
            name: "org.example.balls".to_owned(),
            event: "cycles 997 Hz".to_owned(),
            elapsed: Duration::from_millis(12_340),
            samples: 12_345,
            lost: 7,
            runs: true,
            is_behind: false,
            problem: None,
        },
        layers: vec![
            (Layer::App, 63.5),
            (Layer::Framework, 10.0),
            (Layer::Vm, 5.0),
            (Layer::Native, 1.5),
            (Layer::Kernel, 20.0),
        ],
        methods,
        threads: vec![thread(101, "Binder:1", 5.0), thread(100, "main", 95.0)],
        details: Details {
            lines: vec![line(41, 3.0, 30.0), line(42, 40.0, 41.0)],
            callers: vec![method("org.example.Balls.run", Layer::App, 0.0, 68.0)],
        },
    }
}

pub fn state() -> State {
    State::new(Choice::All)
}

pub fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

pub fn type_keys(state: &mut State, snapshot: &Snapshot, text: &str) {
    for char in text.chars() {
        let code = match char {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            char => KeyCode::Char(char),
        };
        press(state, key(code), snapshot, 10);
    }
}
