//! The drawn screen.

use crate::{key, snapshot, state, type_keys};
use proptest::{collection::vec, prelude::*};
use ratatui::crossterm::event::KeyCode;
use ratatui::{Terminal, backend::TestBackend};
use varid_top::{Outcome, Snapshot, State, draw, lines_of_text, page, press, ratatui};

fn drawn(state: &State, snapshot: &Snapshot, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, snapshot)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_terminal_of_80_columns_shows_methods_without_images() {
    insta::assert_snapshot!(drawn(&state(), &snapshot(), 80, 24));
}

#[test]
fn a_wide_terminal_shows_images_too() {
    insta::assert_snapshot!(drawn(&state(), &snapshot(), 160, 50));
}

#[test]
fn an_opened_method_shows_its_lines_and_callers() {
    let (mut state, snapshot) = (state(), snapshot());
    type_keys(&mut state, &snapshot, "\nj");
    insta::assert_snapshot!(drawn(&state, &snapshot, 80, 12));
}

#[test]
fn threads_sessions_and_keys_have_tables_of_their_own() {
    let (mut state, mut snapshot) = (state(), snapshot());
    snapshot.subject.problem = Some("perf.data\x1b[2J is damaged".to_owned());
    let mut all = String::new();
    for keys in ["\t", "\t", "?"] {
        type_keys(&mut state, &snapshot, keys);
        all.push_str(&drawn(&state, &snapshot, 80, 21));
        all.push('\n');
        snapshot.subject.problem = None;
    }
    insta::assert_snapshot!(all);
}

#[test]
fn what_is_chosen_and_typed_is_said() {
    let (mut state, snapshot) = (state(), snapshot());
    type_keys(&mut state, &snapshot, "tsl /balls");
    insta::assert_snapshot!(drawn(&state, &snapshot, 100, 8));
}

#[test]
fn a_long_command_leaves_room_for_the_numbers() {
    let mut snapshot = snapshot();
    snapshot.subject.name = "sh -c '".to_owned() + &"x".repeat(100) + "'";
    let screen = drawn(&state(), &snapshot, 80, 8);
    let title = screen.lines().next().unwrap();
    assert!(title.contains("sh -c 'xx"), "{title}");
    assert!(title.contains("12345 samples, 7 lost"), "{title}");
}

#[test]
fn text_without_a_terminal_is_the_same_table() {
    insta::assert_snapshot!(lines_of_text(&state(), &snapshot(), 100, 3));
}

#[test]
fn commands_to_a_terminal_in_names_are_not_drawn() {
    let snapshot = snapshot();
    let mut state = state();
    for keys in ["", "\t", "\t", "\t"] {
        type_keys(&mut state, &snapshot, keys);
        let text = lines_of_text(&state, &snapshot, 200, 100);
        let commands = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
        assert!(!text.contains(commands), "{text:?}");
        let screen = drawn(&state, &snapshot, 200, 30);
        assert!(!screen.contains(commands), "{screen:?}");
    }
}

#[test]
fn the_cursor_is_on_the_screen_wherever_it_is() {
    let (mut state, snapshot) = (state(), snapshot());
    for _ in 0..snapshot.methods.len() {
        let screen = drawn(&state, &snapshot, 80, 8);
        assert_eq!(screen.matches("\">").count(), 1, "{screen}");
        press(&mut state, key(KeyCode::Down), &snapshot, page(8));
    }
}

proptest! {
    #[test]
    fn any_size_and_any_keys_are_drawn(
        width in 1..30u16, height in 1..12u16, keys in vec(any::<u8>(), 0..30),
    ) {
        let (mut state, snapshot) = (state(), snapshot());
        for byte in keys {
            let code = match byte {
                0..=31 => KeyCode::Enter,
                32..=126 => KeyCode::Char(char::from(byte)),
                127..=140 => KeyCode::Tab,
                141..=160 => KeyCode::Esc,
                161..=180 => KeyCode::PageDown,
                181..=200 => KeyCode::Up,
                201..=220 => KeyCode::End,
                _ => KeyCode::Left,
            };
            if press(&mut state, key(code), &snapshot, page(height)) == Outcome::Quit {
                break;
            }
            drawn(&state, &snapshot, width, height);
        }
    }

    #[test]
    fn the_smallest_screens_are_drawn(width in 1..=20u16, height in 1..=5u16) {
        drawn(&state(), &snapshot(), width, height);
    }
}
