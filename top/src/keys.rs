//! Applies keys to the state.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use varid_model::Layer;
use varid_report::LiveSpan;

use crate::filter::Filter;
use crate::snapshot::Snapshot;
use crate::state::{Choice, DetailRow, State, Table};

/// The action of the program after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Show the state.
    Show,
    /// End the program.
    Quit,
    /// Suspend the program until the shell continues it.
    Suspend,
}

/// Maximum length of a filter, which exceeds that of any name.
const LONGEST_FILTER: usize = 500;

/// Handles a key. `page`: the number of rows on the screen.
pub fn press(state: &mut State, key: KeyEvent, snapshot: &Snapshot, page: usize) -> Outcome {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return Outcome::Quit,
            KeyCode::Char('z') => return Outcome::Suspend,
            _ => {}
        }
    }
    if let Some(typed) = state.typed.take() {
        type_filter(state, typed, key);
        return Outcome::Show;
    }
    if state.help {
        state.help = false;
        return Outcome::Show;
    }
    match key.code {
        KeyCode::Char('q') => return Outcome::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => state.help = true,
        KeyCode::Char('/') => state.typed = Some(String::new()),
        KeyCode::Char(' ' | 'f') => state.frozen = !state.frozen,
        KeyCode::Char('t') => {
            state.span = match state.span {
                LiveSpan::Recent => LiveSpan::SinceStart,
                LiveSpan::SinceStart => LiveSpan::Recent,
            }
        }
        KeyCode::Char('s') => state.rows.order = state.rows.order.next(),
        KeyCode::Char('l') => show_next_layer(state),
        KeyCode::Char('e') => state.event = state.event.wrapping_add(1),
        KeyCode::Char('c') => show_table(state, Table::Sessions),
        KeyCode::Tab => show_table(state, state.table.next()),
        KeyCode::BackTab => show_table(state, state.table.previous()),
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => back(state),
        KeyCode::Enter | KeyCode::Right => open(state, snapshot),
        code => move_cursor(state, code, page),
    }
    let last = state.rows(snapshot).saturating_sub(1);
    state.cursor.row = state.cursor.row.min(last);
    Outcome::Show
}

/// The filter is applied while it is typed.
fn type_filter(state: &mut State, mut typed: String, key: KeyEvent) {
    match key.code {
        KeyCode::Enter => return,
        KeyCode::Esc => typed.clear(),
        KeyCode::Backspace => _ = typed.pop(),
        KeyCode::Char(char) if typed.len() < LONGEST_FILTER => typed.push(char),
        _ => {}
    }
    state.cursor.row = 0;
    state.rows.filter = Filter::new(typed.clone());
    state.typed = (key.code != KeyCode::Esc).then_some(typed);
}

/// Shows the first layer after all layers, and all layers after the last one.
fn show_next_layer(state: &mut State) {
    let mut layers = Layer::ALL.into_iter();
    state.rows.layer = match state.rows.layer {
        None => layers.next(),
        Some(layer) => layers.skip_while(|other| *other != layer).nth(1),
    };
    state.cursor.row = 0;
}

fn show_table(state: &mut State, table: Table) {
    state.table = table;
    state.opened = None;
    state.cursor.row = 0;
}

/// Closes the opened method, else removes a limit of the rows.
fn back(state: &mut State) {
    if state.opened.take().is_some() {
        state.cursor.row = state.cursor.behind;
    } else if state.table != Table::Methods {
        show_table(state, Table::Methods);
    } else {
        state.rows.filter = Filter::default();
        state.rows.layer = None;
    }
}

/// Opens the row at the cursor.
fn open(state: &mut State, snapshot: &Snapshot) {
    let row = state.cursor.row;
    let method = match (&state.opened, state.table) {
        (Some(_), _) => match state.details(snapshot).get(row) {
            Some(DetailRow::Caller(caller)) => Some(caller.key.clone()),
            _ => None,
        },
        (None, Table::Methods) => {
            state.cursor.behind = row;
            state.methods(snapshot).get(row).map(|row| row.key.clone())
        }
        (None, Table::Threads) => None,
        (None, Table::Sessions) => {
            let session = row.checked_sub(1);
            let session = session.and_then(|row| snapshot.sessions.get(row));
            state.choice =
                session.map_or(Choice::All, |session| Choice::One(session.folder.clone()));
            show_table(state, Table::Methods);
            None
        }
    };
    if method.is_some() {
        state.opened = method;
        state.cursor.row = 0;
    }
}

fn move_cursor(state: &mut State, code: KeyCode, page: usize) {
    let page = page.max(1);
    state.cursor.row = match code {
        KeyCode::Up | KeyCode::Char('k') => state.cursor.row.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => state.cursor.row.saturating_add(1),
        KeyCode::PageUp => state.cursor.row.saturating_sub(page),
        KeyCode::PageDown => state.cursor.row.saturating_add(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => state.cursor.row,
    };
}
