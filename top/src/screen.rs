//! Lays out and draws the screen.
//!
//! Four lines at the top describe what is shown, one line at the bottom lists the keys, and the rows are in between. Without a terminal the
//! same lines are printed. Only ASCII is drawn around names, and colours are never required.

use std::path::Path;
use std::time::Duration;

use ratatui::Frame;
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthChar;
use varid_model::Layer;
use varid_recording::terminal::one_line;
use varid_report::{HALF_LIFE, LiveSpan};

use crate::snapshot::{MethodRow, SessionRow, Snapshot, ThreadRow};
use crate::state::{Choice, DetailRow, State, Table};

/// Number of lines above the rows.
const HEAD: usize = 4;
/// Number of lines below the rows.
const FOOT: usize = 1;
/// From this width on, images are shown beside methods.
const WITH_IMAGES: usize = 100;
/// Columns of the cursor, the numbers and the layer before a method's name.
const BEFORE_NAME: usize = 28;

const KEYS: &str = "q quit  ? keys  / filter  s sort  t recent/all  space freeze  enter open  tab";

const HELP: [&str; 15] = [
    "up down, j k, pgup pgdn, home end   move",
    "enter, right   open: a method's lines and callers, a caller, a session",
    "esc, left      back; without anything open: no filter, all layers",
    "tab            methods, threads, sessions",
    "c              choose a session, or all",
    "s              sort by self, total, name",
    "t              recent samples, or all since the start",
    "l              only app, framework, vm, native, kernel; all",
    "e              the next event, where several are sampled",
    "/              filter names by a text or regular expression; with a capital",
    "               case counts; enter keeps it, esc clears it",
    "space, f       freeze: nothing is read until it is pressed again",
    "ctrl-z         suspend",
    "q, ctrl-c      quit",
    "any key        leave these lines",
];

/// Returns the number of rows on a screen of this height.
#[must_use]
pub fn page(height: u16) -> usize {
    usize::from(height).saturating_sub(HEAD.saturating_add(FOOT))
}

/// Draws the screen, which may have any size.
pub fn draw(frame: &mut Frame<'_>, state: &State, snapshot: &Snapshot) {
    let area = frame.area();
    let width = usize::from(area.width);
    let rows = page(area.height);
    let mut lines = head(state, snapshot, width);
    let (body, cursor) = match state.help {
        true => (HELP.map(str::to_owned).to_vec(), None),
        false => (body(state, snapshot, width), Some(state.cursor.row)),
    };
    let first = cursor.map_or(0, |cursor| cursor.saturating_add(1).saturating_sub(rows));
    for (number, line) in body.into_iter().enumerate().skip(first).take(rows) {
        let (mark, style) = match Some(number) == cursor {
            true => ('>', Style::new().add_modifier(Modifier::REVERSED)),
            false => (' ', Style::new()),
        };
        lines.push((format!("{mark}{line}"), style));
    }
    let above = HEAD.saturating_add(rows);
    lines.resize_with(above, Default::default);
    lines.push((foot(state, snapshot), Style::new()));
    for (y, (line, style)) in (area.y..area.bottom()).zip(lines) {
        let line = fitted(line.trim_end(), width, Kept::Head);
        let line = if style.add_modifier.contains(Modifier::REVERSED) {
            padded(&line, width)
        } else {
            line
        };
        frame
            .buffer_mut()
            .set_stringn(area.x, y, line, width, style);
    }
}

/// Returns the same as text, with this many rows.
#[must_use]
pub fn lines_of_text(state: &State, snapshot: &Snapshot, width: usize, rows: usize) -> String {
    let head = head(state, snapshot, width);
    let head = head.into_iter().map(|(line, _)| line);
    let body = body(state, snapshot, width).into_iter().take(rows);
    let body = body.map(|line| format!(" {line}"));
    let problem = snapshot.subject.problem.as_deref().map(one_line);
    let mut text = String::new();
    for line in head.chain(body).chain(problem) {
        text.push_str(&fitted(line.trim_end(), width, Kept::Head));
        text.push('\n');
    }
    text
}

/// Returns the description of what is shown, and the column headings.
fn head(state: &State, snapshot: &Snapshot, width: usize) -> Vec<(String, Style)> {
    let subject = &snapshot.subject;
    let going_on = match (subject.runs, subject.is_behind) {
        (true, false) => "",
        (_, true) => ", reading",
        (false, false) => ", ended",
    };
    let numbers = format!(
        "  {}  {}{going_on}  {} samples, {} lost",
        one_line(&subject.event),
        shown_time(subject.elapsed),
        subject.samples,
        subject.lost
    );
    // A command may be long, but the numbers after it must stay on the screen.
    const TITLE: &str = "varid top: ";
    let room = width.saturating_sub(TITLE.len().saturating_add(width_of(&numbers)));
    let name = fitted(&one_line(&subject.name), room, Kept::Head);
    let title = format!("{TITLE}{name}{numbers}");
    let layers = snapshot.layers.iter();
    let layers: Vec<_> = layers
        .map(|(layer, percent)| format!("{} {percent:.1}%", layer.name()))
        .collect();
    let bold = Style::new().add_modifier(Modifier::BOLD);
    vec![
        (title, bold),
        (layers.join("  "), Style::new()),
        (status(state), Style::new()),
        (columns(state, width), bold),
    ]
}

/// Describes the selections that were made with keys.
fn status(state: &State) -> String {
    let tables = Table::ALL.map(|table| match table == state.table {
        true => format!("[{}]", table.name()),
        false => table.name().to_owned(),
    });
    let mut parts = vec![tables.join(" ")];
    parts.push(match state.span {
        LiveSpan::Recent => format!("recent ({HALF_LIFE:.0} s)"),
        LiveSpan::SinceStart => "since the start".to_owned(),
    });
    parts.push(format!("by {}", state.rows.order.name()));
    parts.extend(
        state
            .rows
            .layer
            .map(|layer| format!("only {}", layer.name())),
    );
    if !state.rows.filter.text().is_empty() {
        parts.push(format!("filter {}", one_line(state.rows.filter.text())));
    }
    if state.frozen {
        parts.push("FROZEN".to_owned());
    }
    parts.join(" | ")
}

fn columns(state: &State, width: usize) -> String {
    match (&state.opened, state.table) {
        (Some(method), _) => format!(
            "   SELF    TOTAL  {} ({}, {})",
            one_line(&method.name),
            method.layer.name(),
            one_line(&method.image)
        ),
        (None, Table::Methods) => {
            let (name, image) = name_columns(width);
            let mut line = format!("   SELF    TOTAL  {:<9} ", "LAYER");
            line.push_str(&padded("METHOD", name));
            if image > 0 {
                line.push_str("IMAGE");
            }
            line
        }
        (None, Table::Threads) => "   SELF      PID      TID  THREAD, PROCESS".to_owned(),
        (None, Table::Sessions) => " SESSION".to_owned(),
    }
}

/// Returns the widths of a method's name and of its image's; 0 if the column is not shown.
fn name_columns(width: usize) -> (usize, usize) {
    let room = width.saturating_sub(BEFORE_NAME);
    let image = match width >= WITH_IMAGES {
        true => (room / 3).min(40),
        false => 0,
    };
    (room.saturating_sub(image), image)
}

fn body(state: &State, snapshot: &Snapshot, width: usize) -> Vec<String> {
    match (&state.opened, state.table) {
        (Some(_), _) => details(state, snapshot, width),
        (None, Table::Methods) => {
            let rows = state.methods(snapshot).into_iter();
            rows.map(|row| method(row, width)).collect()
        }
        (None, Table::Threads) => {
            let rows = state.threads(snapshot).into_iter();
            rows.map(thread).collect()
        }
        (None, Table::Sessions) => sessions(state, snapshot),
    }
}

fn method(row: &MethodRow, width: usize) -> String {
    let (name, image) = name_columns(width);
    let mut line = format!(
        "{:6.2}% {:6.2}%  {:<9} ",
        row.own,
        row.total,
        row.key.layer.name()
    );
    let room = name.saturating_sub(1);
    line.push_str(&padded(&shown_name(row, room), name));
    if image > 0 {
        line.push_str(&fitted(&one_line(&row.key.image), image, Kept::Tail));
    }
    line
}

/// Fits a method's name into this many columns. For managed code, which has packages, the end of the name is the important part.
fn shown_name(row: &MethodRow, room: usize) -> String {
    let name = one_line(&row.key.name);
    let name = match row.key.inlined {
        true => format!("{name} (inlined)"),
        false => name,
    };
    let kept = match row.key.layer {
        Layer::App | Layer::Framework => Kept::Tail,
        Layer::Vm | Layer::Native | Layer::Kernel => Kept::Head,
    };
    fitted(&name, room, kept)
}

fn thread(row: &ThreadRow) -> String {
    format!(
        "{:6.2}% {:>8} {:>8}  {}, {}",
        row.own,
        row.pid,
        row.tid,
        one_line(&row.name),
        one_line(&row.process)
    )
}

fn details(state: &State, snapshot: &Snapshot, width: usize) -> Vec<String> {
    let room = width.saturating_sub(BEFORE_NAME);
    let row = |row| match row {
        DetailRow::Line(line) => {
            let place = match &line.place {
                Some((file, number)) => {
                    let number = format!(":{number}");
                    let room = room.saturating_sub(number.len());
                    format!("{}{number}", fitted(&one_line(file), room, Kept::Tail))
                }
                None => "[no line]".to_owned(),
            };
            format!("{:6.2}% {:6.2}%  line      {place}", line.own, line.total)
        }
        DetailRow::Caller(caller) => format!(
            "        {:6.2}%  from      {}",
            caller.total,
            shown_name(caller, room)
        ),
    };
    state.details(snapshot).into_iter().map(row).collect()
}

fn sessions(state: &State, snapshot: &Snapshot) -> Vec<String> {
    let mark = |chosen: bool| if chosen { '*' } else { ' ' };
    let all = format!("{} all of them", mark(state.choice == Choice::All));
    let row = |session: &SessionRow| {
        let chosen = state.choice == Choice::One(session.folder.clone());
        let runs = if session.runs { "recording" } else { "ended" };
        format!(
            "{} {runs:<9}  {}  {}",
            mark(chosen),
            one_line(&session.target),
            one_line(&file_name(&session.folder))
        )
    };
    let sessions = snapshot.sessions.iter().map(row);
    std::iter::once(all).chain(sessions).collect()
}

fn foot(state: &State, snapshot: &Snapshot) -> String {
    match (&state.typed, &snapshot.subject.problem) {
        (Some(typed), _) => format!("/{}_", one_line(typed)),
        (None, Some(problem)) => one_line(problem),
        (None, None) => KEYS.to_owned(),
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{:.1} s", time.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// The end of a text that is kept if the text is too long.
#[derive(Debug, Clone, Copy)]
enum Kept {
    Head,
    Tail,
}

/// Replaces the part that is left out.
const LEFT_OUT: &str = "..";

/// Fits a text into at most this many columns.
fn fitted(text: &str, columns: usize, kept: Kept) -> String {
    if width_of(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(LEFT_OUT.len());
    let mut taken = 0usize;
    let mut fits = |char: &char| {
        taken = taken.saturating_add(char.width().unwrap_or(0));
        taken <= room
    };
    let text: String = match kept {
        Kept::Head => {
            let head: String = text.chars().take_while(&mut fits).collect();
            format!("{head}{LEFT_OUT}")
        }
        Kept::Tail => {
            let tail: Vec<_> = text.chars().rev().take_while(&mut fits).collect();
            let tail = tail.into_iter().rev();
            LEFT_OUT.chars().chain(tail).collect()
        }
    };
    text.chars().take(columns.max(LEFT_OUT.len())).collect()
}

/// Pads a text to at least this many columns.
fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width_of(text));
    format!("{text}{}", " ".repeat(missing))
}

fn width_of(text: &str) -> usize {
    let widths = text.chars().map(|char| char.width().unwrap_or(0));
    widths.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_keeps_the_end_that_says_more() {
        assert_eq!(
            fitted("org.example.Balls.draw", 12, Kept::Tail),
            "..Balls.draw"
        );
        assert_eq!(fitted("memcpy_avx_unaligned", 10, Kept::Head), "memcpy_a..");
        assert_eq!(fitted("short", 5, Kept::Tail), "short");
        assert_eq!(
            width_of(&fitted("\u{4e16}\u{754c}\u{4e16}\u{754c}", 5, Kept::Head)),
            4
        );
        for columns in 0..4 {
            assert!(width_of(&fitted("abcdefgh", columns, Kept::Tail)) <= columns.max(2));
        }
    }

    #[test]
    fn times_are_as_clocks_show_them() {
        for (seconds, expected) in [(12, "12.0 s"), (75, "1:15"), (3_725, "1:02:05")] {
            assert_eq!(shown_time(Duration::from_secs(seconds)), expected);
        }
    }
}
