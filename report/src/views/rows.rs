//! The rows of the tables by image, symbol, thread and so on.

use std::{borrow::Cow, cmp::Ordering, collections::HashMap};

use varid_model::{Layer, Pid, Tid};

use crate::{
    activity::{Activities, Activity},
    code_filter::has_name,
    frames::{ProfileImage, ProfileSymbol, SourceLine, SymbolId},
    name_pattern::NamePattern,
    naming::MARKERS,
    profile::Profile,
    scope::Scope,
    shares::Share,
    tasks::Task,
    view::{GroupBy, RowOrder, View},
    weights::Weight,
};

/// A row of a table.
#[derive(Debug, Clone)]
pub struct Row<'p> {
    /// The item of the row.
    pub subject: Subject<'p>,
    /// Its share.
    pub share: Share,
    /// For a line: the part of the total with an approximate line.
    pub approximate: Weight,
}

/// The item of a row.
#[derive(Debug, Clone)]
pub enum Subject<'p> {
    Layer(Layer),
    Image(&'p ProfileImage),
    Symbol(SymbolSubject<'p>),
    Thread(&'p Task, Cow<'p, str>),
    Process(Pid, Cow<'p, str>),
    /// None for processes that belong to no service.
    Service(Option<&'p str>),
    Activity(Activity),
}

/// A symbol, or a line of it.
#[derive(Debug, Clone, Copy)]
pub struct SymbolSubject<'p> {
    pub id: SymbolId,
    pub symbol: &'p ProfileSymbol,
    pub image: Option<&'p ProfileImage>,
    pub line: Option<&'p SourceLine>,
}

impl<'p> Row<'p> {
    pub fn layer(&self) -> Option<Layer> {
        match &self.subject {
            Subject::Layer(layer) => Some(*layer),
            Subject::Image(image) => Some(image.layer),
            Subject::Symbol(symbol) => Some(symbol.symbol.layer),
            Subject::Thread(..)
            | Subject::Process(..)
            | Subject::Service(_)
            | Subject::Activity(_) => None,
        }
    }

    /// The name of the image.
    pub fn image(&self) -> Option<&'p str> {
        match &self.subject {
            Subject::Image(image) => Some(&image.name),
            Subject::Symbol(SymbolSubject { image, .. }) => image.map(|image| image.name.as_str()),
            _ => None,
        }
    }

    pub const fn symbol(&self) -> Option<SymbolSubject<'p>> {
        match &self.subject {
            Subject::Symbol(symbol) => Some(*symbol),
            _ => None,
        }
    }

    /// The symbol's name with perf's mark if it is inlined.
    pub fn symbol_name(&self) -> Cow<'p, str> {
        match self.symbol().map(|subject| subject.symbol) {
            Some(symbol) if symbol.inlined => format!("{} (inlined)", symbol.name).into(),
            Some(symbol) => symbol.name.as_str().into(),
            None => "".into(),
        }
    }

    pub fn line(&self) -> Option<&'p SourceLine> {
        self.symbol()?.line
    }

    pub const fn pid(&self) -> Option<Pid> {
        match &self.subject {
            Subject::Thread(task, _) => Some(task.pid),
            Subject::Process(pid, _) => Some(*pid),
            _ => None,
        }
    }

    /// The name of the process.
    pub fn process(&self) -> Option<Cow<'p, str>> {
        match &self.subject {
            Subject::Thread(_, name) | Subject::Process(_, name) => Some(name.clone()),
            _ => None,
        }
    }

    pub const fn tid(&self) -> Option<Tid> {
        match &self.subject {
            Subject::Thread(task, _) => Some(task.tid),
            _ => None,
        }
    }

    /// The name of the thread.
    pub fn thread(&self) -> Option<&'p str> {
        match &self.subject {
            Subject::Thread(task, _) => Some(&task.name),
            _ => None,
        }
    }

    pub const fn service(&self) -> Option<&'p str> {
        match &self.subject {
            Subject::Service(name) => *name,
            _ => None,
        }
    }

    pub const fn activity(&self) -> Option<Activity> {
        match self.subject {
            Subject::Activity(activity) => Some(activity),
            _ => None,
        }
    }

    /// The key that distinguishes the rows of a table. Rows with equal values are sorted by it.
    pub fn key(&self) -> impl Ord + use<'p> {
        let symbol = self.symbol();
        let name = symbol.map(|symbol| symbol.symbol.name.as_str());
        let inlined = symbol.is_some_and(|symbol| symbol.symbol.inlined);
        (
            (self.layer(), name, self.image(), inlined),
            self.line().map(|line| (&*line.file, line.line)),
            (self.pid(), self.process()),
            (self.service(), self.tid(), self.thread(), self.activity()),
            symbol.map(|symbol| symbol.id),
        )
    }

    /// The key that merges tasks into rows. A process has a row for each program that it executes, a thread for each of
    /// its names and services.
    fn task_group(&self) -> impl Ord + use<'p> {
        let service = match &self.subject {
            Subject::Thread(task, _) => task.service,
            _ => None,
        };
        (
            (self.pid(), self.process()),
            self.tid(),
            self.thread(),
            service,
            self.service(),
        )
    }

    /// Returns true if a pattern matches the displayed or the recorded name of the symbol.
    fn matches(&self, pattern: &NamePattern) -> bool {
        let symbol = self.symbol();
        symbol.is_none_or(|symbol| has_name(symbol.symbol, pattern))
    }
}

/// The rows of a view, and the number of hidden ones.
#[derive(Debug, Clone)]
pub struct Rows<'p> {
    pub shown: Vec<Row<'p>>,
    /// Number of rows below the view's limits, not counting those that filters exclude.
    pub hidden: usize,
}

/// Returns the rows of a table that pass the view's filters.
pub fn selected<'p>(scope: &Scope<'p>, by: GroupBy, view: &View) -> Vec<Row<'p>> {
    let mut rows = all(scope, by, view);
    rows.retain(|row| {
        view.code
            .layer
            .is_none_or(|layer| row.layer().is_none_or(|of_row| of_row == layer))
            && view
                .code
                .symbol
                .as_ref()
                .is_none_or(|pattern| row.matches(pattern))
    });
    rows
}

/// Compares two rows in the order of a view.
pub fn compare(scope: &Scope, view: &View, one: &Row, other: &Row) -> Ordering {
    let value = |row: &Row| {
        let Share { own, total } = row.share;
        (scope.value(own), scope.value(total))
    };
    let total_first = |row: &Row| {
        let (own, total) = value(row);
        (total, own)
    };
    match view.order {
        RowOrder::Own => value(other).cmp(&value(one)),
        RowOrder::Total => total_first(other).cmp(&total_first(one)),
        RowOrder::Name => Ordering::Equal,
    }
}

/// Returns the rows of a table in the view's order.
pub fn rows<'p>(scope: &Scope<'p>, by: GroupBy, view: &View) -> Rows<'p> {
    let mut rows = selected(scope, by, view);
    rows.sort_by(|one, other| {
        let by_value = compare(scope, view, one, other);
        by_value.then_with(|| one.key().cmp(&other.key()))
    });
    let found = rows.len();
    rows.retain(|row| scope.percent(row.share.total) >= view.min_percent);
    view.truncate(&mut rows);
    Rows {
        hidden: found.saturating_sub(rows.len()),
        shown: rows,
    }
}

fn all<'p>(scope: &Scope<'p>, by: GroupBy, view: &View) -> Vec<Row<'p>> {
    let profile = scope.profile;
    let symbol_of = |frame| scope.symbol_of(frame);
    // A symbol pattern selects rows if the rows are symbols, otherwise leaves.
    let selected = matches!(by, GroupBy::Layer | GroupBy::Image) && view.code.symbol.is_some();
    let selected = selected.then(|| scope.selected_weights());
    let weights = selected.as_ref().unwrap_or(&scope.weights);
    match by {
        GroupBy::Layer => {
            let layer = |frame| Some(profile.frames.symbol_of(frame)?.layer);
            let shares = weights.by_frame(layer);
            made(shares, |layer| Some(Subject::Layer(layer)))
        }
        GroupBy::Image => {
            let image = |frame| Some(profile.frames.symbol_of(frame)?.image);
            let mut shares = weights.by_frame(image);
            // Markers have no file. They are only shown if one of them is a leaf.
            shares.retain(|id, share| {
                let image = profile.frames.image(*id);
                !share.own.is_zero() || image.is_none_or(|image| image.name != MARKERS)
            });
            made(shares, |id| Some(Subject::Image(profile.frames.image(id)?)))
        }
        GroupBy::Symbol => {
            let shares = scope.weights.by_frame(symbol_of);
            let rows = shares.into_iter();
            rows.filter_map(|(id, share)| symbol_row(scope, id, share))
                .collect()
        }
        GroupBy::Line => lines(scope),
        GroupBy::Thread => by_task(scope, |task| {
            Subject::Thread(task, process_name(profile, task))
        }),
        GroupBy::Process => by_task(scope, |task| {
            Subject::Process(task.pid, process_name(profile, task))
        }),
        GroupBy::Service => by_task(scope, |task| {
            Subject::Service(task.service.and_then(|id| profile.tasks.service(id)))
        }),
        GroupBy::Activity => by_activity(scope),
    }
}

/// Makes a row for each line of each symbol, merging exact and approximate frames.
fn lines<'p>(scope: &Scope<'p>) -> Vec<Row<'p>> {
    let frames = &scope.profile.frames;
    let place = |frame| {
        let line = frames.frame(frame)?.line.as_ref();
        let symbol = scope.symbol_of(frame)?;
        Some((symbol, line.map(|line| (&line.file, line.line))))
    };
    let approximate = |frame| place(frame).filter(|_| frames.is_approximate(frame));
    let approximate = scope.weights.by_frame(approximate);
    let lines = frames
        .frames()
        .iter()
        .filter_map(|frame| frame.line.as_ref());
    let lines: HashMap<_, _> = lines.map(|line| ((&line.file, line.line), line)).collect();
    let row = |(place, share): ((SymbolId, Option<_>), Share)| {
        let mut row = symbol_row(scope, place.0, share)?;
        if let Subject::Symbol(symbol) = &mut row.subject {
            symbol.line = place.1.and_then(|line| lines.get(&line).copied());
        }
        let part = approximate.get(&place);
        row.approximate = part.map(|share| share.total).unwrap_or_default();
        Some(row)
    };
    let shares = scope.weights.by_frame(place);
    shares.into_iter().filter_map(row).collect()
}

/// Makes a row for a symbol as a whole.
pub fn symbol_row<'p>(scope: &Scope<'p>, id: SymbolId, share: Share) -> Option<Row<'p>> {
    let symbol = SymbolSubject {
        id,
        symbol: scope.profile.frames.symbol(id)?,
        image: scope.image_of(id),
        line: None,
    };
    Some(Row {
        subject: Subject::Symbol(symbol),
        share,
        approximate: Weight::default(),
    })
}

fn made<'p, G>(
    shares: impl IntoIterator<Item = (G, Share)>,
    subject: impl Fn(G) -> Option<Subject<'p>>,
) -> Vec<Row<'p>> {
    let row = |(group, share)| {
        Some(Row {
            subject: subject(group)?,
            share,
            approximate: Weight::default(),
        })
    };
    shares.into_iter().filter_map(row).collect()
}

/// Makes a row for each group of tasks. All of its samples count as its own.
fn by_task<'p>(scope: &Scope<'p>, subject: impl Fn(&'p Task) -> Subject<'p>) -> Vec<Row<'p>> {
    let counters = scope.measures.counters();
    let mut tasks = vec![Weight::default(); scope.profile.tasks.tasks.len()];
    for row in scope.profile.weights.rows(&counters) {
        if !scope.selects_leaf(row.stack) {
            continue;
        }
        if let Some(weight) = tasks.get_mut(row.task.index()) {
            weight.add(row.weight);
        }
    }
    let tasks = scope.profile.tasks.tasks.iter().zip(tasks);
    let mut rows: Vec<Row> = tasks
        .filter(|(_, weight)| !weight.is_zero())
        .map(|(task, weight)| Row {
            subject: subject(task),
            share: Share {
                own: weight,
                total: weight,
            },
            approximate: Weight::default(),
        })
        .collect();
    // Merge the tasks of a process or service into one row.
    rows.sort_by(|one, other| one.task_group().cmp(&other.task_group()));
    rows.dedup_by(|next, row| {
        let same = next.task_group() == row.task_group();
        if same {
            row.share.own.add(next.share.own);
            row.share.total.add(next.share.total);
        }
        same
    });
    rows
}

/// Makes a row for each activity. All of its samples count as its own.
fn by_activity<'p>(scope: &Scope<'p>) -> Vec<Row<'p>> {
    let activities = Activities::new(scope.profile);
    let mut shares: HashMap<Activity, Share> = HashMap::new();
    for row in scope.profile.weights.rows(&scope.measures.counters()) {
        if scope.selects_leaf(row.stack) && !row.weight.is_zero() {
            let activity = activities.of(row.task, row.stack);
            let share = shares.entry(activity).or_default();
            share.own.add(row.weight);
            share.total.add(row.weight);
        }
    }
    made(shares, |activity| Some(Subject::Activity(activity)))
}

/// The name of a task's process, or its pid.
fn process_name<'p>(profile: &'p Profile, task: &Task) -> Cow<'p, str> {
    match profile.tasks.process_name(task) {
        Some(name) => Cow::Borrowed(name),
        None => format!(":{}", task.pid).into(),
    }
}
