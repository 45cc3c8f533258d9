//! Keys change the state.

use crate::{key, snapshot, state, type_keys};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::PathBuf;
use varid_model::Layer;
use varid_report::LiveSpan;
use varid_top::{Choice, Order, Outcome, State, Table, press, ratatui};

fn names(state: &State) -> Vec<String> {
    let snapshot = snapshot();
    let methods = state.methods(&snapshot).into_iter();
    methods
        .map(|row| row.key.name.split('(').next().unwrap().to_owned())
        .collect()
}

#[test]
fn methods_are_sorted_by_own_then_total_then_name() {
    let (mut state, snapshot) = (state(), snapshot());
    assert_eq!(
        names(&state)[..2],
        [
            "org.example.Balls.draw",
            "org.example.a.package.with.a.very.long.name.that.fits.nowhere.Balls.method"
        ]
    );
    type_keys(&mut state, &snapshot, "s");
    assert_eq!(state.rows.order, Order::Total);
    assert_eq!(names(&state)[0], "org.example.Balls.run");
    type_keys(&mut state, &snapshot, "s");
    assert_eq!(names(&state)[0], "art::Thread::Attach");
    type_keys(&mut state, &snapshot, "s");
    assert_eq!(state.rows.order, Order::Own);
}

#[test]
fn a_filter_applies_while_it_is_typed_and_its_keys_do_nothing_else() {
    let (mut state, snapshot) = (state(), snapshot());
    type_keys(&mut state, &snapshot, "/q|draw");
    assert_eq!(
        names(&state),
        ["org.example.Balls.draw", "java.lang.Math.sqrt"]
    );
    type_keys(&mut state, &snapshot, "\n");
    assert_eq!((state.rows.filter.text(), &state.typed), ("q|draw", &None));
    type_keys(&mut state, &snapshot, "\x1b");
    assert_eq!(state.rows.filter.text(), "");
    type_keys(&mut state, &snapshot, "/sqrt\x1b");
    assert_eq!((state.rows.filter.text(), &state.typed), ("", &None));
}

#[test]
fn layers_come_one_after_the_other_and_then_all() {
    let (mut state, snapshot) = (state(), snapshot());
    for layer in Layer::ALL.map(Some).into_iter().chain([None]) {
        type_keys(&mut state, &snapshot, "l");
        assert_eq!(state.rows.layer, layer);
    }
    type_keys(&mut state, &snapshot, "lllll");
    assert_eq!(names(&state), ["sys_read"]);
}

#[test]
fn a_method_is_opened_its_caller_from_there_and_back_is_where_it_was() {
    let (mut state, snapshot) = (state(), snapshot());
    type_keys(&mut state, &snapshot, "jj\n");
    assert_eq!(state.opened.as_ref().unwrap().name, "sys_read");
    // Lines cannot be opened, callers can.
    type_keys(&mut state, &snapshot, "\n");
    assert_eq!(state.opened.as_ref().unwrap().name, "sys_read");
    type_keys(&mut state, &snapshot, "G\n");
    assert_eq!(state.opened.as_ref().unwrap().name, "org.example.Balls.run");
    type_keys(&mut state, &snapshot, "\x1b");
    assert_eq!((&state.opened, state.cursor.row), (&None, 2));
    assert_eq!(state.request().opened, None);
}

#[test]
fn the_cursor_stays_among_the_rows() {
    let (mut state, snapshot) = (state(), snapshot());
    press(&mut state, key(KeyCode::Up), &snapshot, 3);
    assert_eq!(state.cursor.row, 0);
    press(&mut state, key(KeyCode::PageDown), &snapshot, 3);
    assert_eq!(state.cursor.row, 3);
    press(&mut state, key(KeyCode::End), &snapshot, 3);
    assert_eq!(state.cursor.row, snapshot.methods.len() - 1);
    type_keys(&mut state, &snapshot, "/nothing has this name");
    assert_eq!(state.cursor.row, 0);
}

#[test]
fn a_session_is_chosen_and_all_of_them() {
    let (mut state, snapshot) = (state(), snapshot());
    type_keys(&mut state, &snapshot, "cj\n");
    let balls = Choice::One(PathBuf::from("/sessions/balls"));
    assert_eq!((&state.choice, state.table), (&balls, Table::Methods));
    type_keys(&mut state, &snapshot, "c\n");
    assert_eq!(state.choice, Choice::All);
}

#[test]
fn tables_span_event_freeze_and_help_are_toggled() {
    let (mut state, snapshot) = (state(), snapshot());
    type_keys(&mut state, &snapshot, "\t");
    assert_eq!(state.table, Table::Threads);
    press(&mut state, key(KeyCode::BackTab), &snapshot, 3);
    press(&mut state, key(KeyCode::BackTab), &snapshot, 3);
    assert_eq!(state.table, Table::Sessions);
    type_keys(&mut state, &snapshot, "te f?");
    assert_eq!((state.span, state.event), (LiveSpan::SinceStart, 1));
    assert!(!state.frozen && state.help);
    // Any key closes the help and has no other effect.
    type_keys(&mut state, &snapshot, "q");
    assert!(!state.help);
}

#[test]
fn q_and_ctrl_c_end_it_also_while_a_filter_is_typed() {
    let (mut state, snapshot) = (state(), snapshot());
    let control = |char| KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL);
    let outcome = press(&mut state, key(KeyCode::Char('q')), &snapshot, 3);
    assert_eq!(outcome, Outcome::Quit);
    type_keys(&mut state, &snapshot, "/");
    for (char, expected) in [('z', Outcome::Suspend), ('c', Outcome::Quit)] {
        assert_eq!(press(&mut state, control(char), &snapshot, 3), expected);
    }
}
