//! Which rows does a table have?

use std::sync::Arc;

use varid_model::Layer;

use crate::{
    calls::Calls,
    options::Pattern,
    place::{PlaceId, SymbolId},
    profile::Profile,
    resolve::MARKERS,
    services::ServiceId,
    tree::{Key, Share},
    view::{By, View},
};

/// A line of a table: what it is, as far as the table tells, and what it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    pub layer: Option<Layer>,
    pub image: Option<String>,
    pub symbol: Option<String>,
    /// The symbol's name in the recording, if that is another.
    pub recorded: Option<String>,
    /// Whether the symbol is the copies of a function in its callers.
    pub inlined: bool,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub pid: Option<u32>,
    pub process: Option<String>,
    pub tid: Option<u32>,
    pub thread: Option<String>,
    pub service: Option<String>,
    pub share: Share,
    /// How often the symbol was called, where that was counted.
    pub calls: Option<Calls>,
    /// In tables by symbol, whose row it is.
    pub id: Option<SymbolId>,
}

impl Row {
    /// The symbol's name, marked as perf does if it is inlined.
    pub fn symbol_name(&self) -> String {
        let name = self.symbol.as_deref().unwrap_or_default();
        let mark = if self.inlined { " (inlined)" } else { "" };
        format!("{name}{mark}")
    }

    /// `file:line`, as perf has it without the file's folder; `-` if it is not known.
    pub fn source_line(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => {
                let name = file.rsplit('/').next().unwrap_or(file);
                format!("{name}:{line}")
            }
            _ => "-".to_owned(),
        }
    }

    /// Whether a pattern means the symbol, under either of its names.
    fn matches(&self, pattern: &Pattern) -> bool {
        let mut names = [&self.symbol, &self.recorded].into_iter().flatten();
        names.any(|name| pattern.matches(name))
    }
}

/// The rows that a view shows, and what it hides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    pub shown: Vec<Row>,
    /// Number of rows below the view's limits; those that its filters exclude do not count.
    pub hidden: usize,
}

/// The rows of a table, those with the most of their own first.
pub fn rows(profile: &Profile, by: By, view: &View) -> Rows {
    let mut rows = all(profile, by);
    rows.retain(|row| {
        view.layer
            .is_none_or(|wanted| row.layer.is_none_or(|layer| layer == wanted))
            && view
                .symbol
                .as_ref()
                .is_none_or(|pattern| row.symbol.is_none() || row.matches(pattern))
    });
    let value = |row: &Row| {
        let Share { own, total } = row.share;
        let calls = row.calls.filter(|_| by == By::Calls).unwrap_or_default();
        (
            calls,
            view.percent_of.value(own),
            view.percent_of.value(total),
        )
    };
    let name = |row: &Row| {
        (
            row.layer,
            row.symbol.clone(),
            row.image.clone(),
            row.inlined,
            (row.file.clone(), row.line),
            (row.pid, row.service.clone()),
            row.tid,
            row.thread.clone(),
        )
    };
    rows.sort_by(|one, other| {
        let by_value = value(other).cmp(&value(one));
        by_value.then_with(|| name(one).cmp(&name(other)))
    });
    let found = rows.len();
    let invokes = |calls: &Calls| calls.invokes;
    let all = match by {
        By::Calls => profile
            .calls
            .values()
            .map(invokes)
            .fold(0, u64::saturating_add),
        _ => view.percent_of.value(profile.weight()),
    };
    let part = |row: &Row| match (by, value(row)) {
        (By::Calls, (calls, ..)) => calls.invokes,
        (_, (.., total)) => total,
    };
    rows.retain(|row| percent(part(row), all) >= view.min_percent);
    rows.truncate(view.limit.unwrap_or(usize::MAX));
    Rows {
        hidden: found.saturating_sub(rows.len()),
        shown: rows,
    }
}

/// How many percent of `all` a part is; none of nothing.
#[allow(clippy::cast_precision_loss)] // six decimals are shown at most
pub fn percent(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 * 100.0 / all as f64
    }
}

fn all(profile: &Profile, by: By) -> Vec<Row> {
    let symbol = |key| match key {
        Key::Place(id) => profile.symbol_at(id),
        Key::Task(_) => None,
    };
    let place = |key| match key {
        Key::Place(id) => profile.place(id).map(|place| (id, place)),
        Key::Task(_) => None,
    };
    let task = |key| match key {
        Key::Task(id) => profile.task(id).map(|task| (id, task)),
        Key::Place(_) => None,
    };
    match by {
        By::Layer => made(
            profile.tree.shares(|key| Some(symbol(key)?.layer)),
            |layer| Row {
                layer: Some(layer),
                ..Row::default()
            },
        ),
        By::Image => {
            let mut shares = profile.tree.shares(|key| Some(symbol(key)?.image));
            // Markers are in no file; they are shown only where one stands for a leaf.
            shares.retain(|id, share| {
                let image = profile.image(*id);
                share.own.samples > 0 || image.is_none_or(|image| image.name != MARKERS)
            });
            made(shares, |id| {
                let image = profile.image(id);
                Row {
                    layer: image.map(|image| image.layer),
                    image: image.map(|image| image.name.clone()),
                    ..Row::default()
                }
            })
        }
        By::Symbol => made(
            profile.tree.shares(|key| Some(place(key)?.1.symbol)),
            |id| symbol_row(profile, id),
        ),
        By::Calls => {
            let mut shares = profile.tree.shares(|key| Some(place(key)?.1.symbol));
            let counted = profile.calls.keys();
            let counted = counted.map(|id| (*id, shares.remove(id).unwrap_or_default()));
            made(counted.collect::<Vec<_>>(), |id| symbol_row(profile, id))
        }
        By::Line => made(profile.tree.shares(|key| Some(place(key)?.0)), |id| {
            line_row(profile, id)
        }),
        By::Thread => {
            let shares = profile.tree.shares(|key| Some(task(key)?.0));
            made(whole(shares), |id| {
                let task = profile.task(id);
                Row {
                    pid: task.map(|task| task.pid),
                    process: task.map(|task| process_name(profile, task.pid)),
                    tid: task.map(|task| task.tid),
                    thread: task.map(|task| task.name.to_string()),
                    ..Row::default()
                }
            })
        }
        By::Service => {
            let shares = profile.tree.shares(|key| Some(task(key)?.1.service));
            let name = |id: ServiceId| profile.services.get(usize::try_from(id.0).ok()?).cloned();
            made(whole(shares), |service| Row {
                service: service.and_then(name),
                ..Row::default()
            })
        }
        By::Process => {
            let shares = profile.tree.shares(|key| Some(task(key)?.1.pid));
            made(whole(shares), |pid| Row {
                pid: Some(pid),
                process: Some(process_name(profile, pid)),
                ..Row::default()
            })
        }
    }
}

/// A row that says which symbol it is of, and no more.
pub fn symbol_row(profile: &Profile, id: SymbolId) -> Row {
    let symbol = profile.symbol(id);
    let image = symbol.and_then(|symbol| profile.image(symbol.image));
    Row {
        layer: symbol.map(|symbol| symbol.layer),
        image: image.map(|image| image.name.clone()),
        symbol: symbol.map(|symbol| symbol.name.clone()),
        recorded: symbol.and_then(|symbol| symbol.recorded.clone()),
        inlined: symbol.is_some_and(|symbol| symbol.inlined),
        calls: profile.calls.get(&id).copied(),
        id: Some(id),
        ..Row::default()
    }
}

fn line_row(profile: &Profile, id: PlaceId) -> Row {
    let Some(place) = profile.place(id) else {
        return Row::default();
    };
    let location = place.location.as_ref();
    Row {
        file: location.map(|location| Arc::clone(&location.file)),
        line: location.map(|location| location.line),
        ..symbol_row(profile, place.symbol)
    }
}

fn made<G>(shares: impl IntoIterator<Item = (G, Share)>, row: impl Fn(G) -> Row) -> Vec<Row> {
    let row = |(group, share)| Row {
        share,
        ..row(group)
    };
    shares.into_iter().map(row).collect()
}

/// A thread's samples are its own, wherever their leaf was.
fn whole<G>(shares: impl IntoIterator<Item = (G, Share)>) -> impl Iterator<Item = (G, Share)> {
    shares.into_iter().map(|(group, Share { total, .. })| {
        let own = total;
        (group, Share { own, total })
    })
}

fn process_name(profile: &Profile, pid: u32) -> String {
    profile
        .processes
        .get(&pid)
        .map_or_else(|| format!(":{pid}"), ToString::to_string)
}
