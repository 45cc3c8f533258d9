//! A table with the shares of the samples of all events in each row.

use std::{borrow::Cow, collections::BTreeMap};

use varid_recording::terminal::one_line;

use super::{
    groups,
    ratios::{self, Ratios, plain},
    rows::{self, Row},
};
use crate::{
    columns::{Object, OutputFormat, Value},
    scope::Scope,
    shares::Share,
    sheet::{Sheet, SheetRole},
    view::GroupBy,
};

/// A row with its share of each event, in the order of the profile.
#[derive(Debug)]
struct Line<'p> {
    row: Row<'p>,
    shares: Vec<Share>,
    ratios: Vec<Ratios>,
}

/// The columns of an event.
#[derive(Debug)]
struct EventColumns<'s, 'p> {
    scope: &'s Scope<'p>,
    /// Index among the events.
    place: usize,
    /// Whether text has a column for this ratio.
    per_cycle: bool,
    per_thousand: bool,
}

/// Makes one sheet with the rows of all events, sorted by the view's event.
pub fn sheets<'s>(scope: &'s Scope<'_>, by: GroupBy, format: OutputFormat) -> Vec<Sheet<'s>> {
    let events = scope.profile.events.iter();
    let of_event = |event| Scope::of_samples(scope.profile, scope.view, event);
    let scopes: Vec<Scope> = events.map(of_event).collect();
    let (lines, hidden) = lines(scope, by, &scopes);
    let events: Vec<EventColumns> = (0..)
        .zip(&scopes)
        .map(|(place, scope)| {
            let ratios = || lines.iter().filter_map(|line| line.ratios.get(place));
            EventColumns {
                scope,
                place,
                per_cycle: ratios().any(|ratios| ratios.per_cycle() != Value::Absent),
                // For cycles, it would be the inverse of the ratio of instructions.
                per_thousand: !ratios::is_cycles(&scope.description.name)
                    && ratios().any(|ratios| ratios.per_thousand() != Value::Absent),
            }
        })
        .collect();
    let mut labels = groups::labels_alone(by).of(format);
    let narrow = !scope.view.text.has_room_for_images();
    if format == OutputFormat::Text && narrow && labels.len() > 1 {
        labels.retain(|label| !groups::is_named(label, "image name"));
    }
    let mut sheet = Sheet::new(SheetRole::Rows, &labels, format);
    let names = match format {
        OutputFormat::Json => vec!["events".into()],
        OutputFormat::Text => events.iter().flat_map(EventColumns::text_names).collect(),
        OutputFormat::Csv => events.iter().flat_map(EventColumns::csv_names).collect(),
    };
    sheet.insert_columns(names, format);
    for line in &lines {
        let values = match format {
            OutputFormat::Json => {
                let objects = events.iter().map(|event| event.object(line));
                vec![Value::List(objects.collect())]
            }
            OutputFormat::Text => events.iter().flat_map(|event| event.text(line)).collect(),
            OutputFormat::Csv => events.iter().flat_map(|event| event.csv(line)).collect(),
        };
        sheet.push_with(&labels, scope, &line.row, values, format);
    }
    (sheet.hidden, sheet.width) = (hidden, scope.view.text.width);
    vec![sheet]
}

/// Returns the rows, and the number that the view's limits hide. A row is shown if its share of any event is large enough.
fn lines<'p>(scope: &Scope<'p>, by: GroupBy, scopes: &[Scope<'p>]) -> (Vec<Line<'p>>, usize) {
    let view = scope.view;
    let mut found = BTreeMap::new();
    for (place, scope) in scopes.iter().enumerate() {
        for row in rows::selected(scope, by, view) {
            let share = row.share;
            let line = found.entry(row.key()).or_insert_with(|| Line {
                row,
                shares: vec![Share::default(); scopes.len()],
                ratios: Vec::new(),
            });
            if let Some(slot) = line.shares.get_mut(place) {
                *slot = share;
            }
        }
    }
    let shown = scopes
        .iter()
        .position(|of| of.event.event == scope.event.event);
    let mut lines: Vec<Line> = found.into_values().collect();
    for line in &mut lines {
        let share = shown.and_then(|place| line.shares.get(place));
        line.row.share = share.copied().unwrap_or_default();
        let counts: Vec<_> = scopes
            .iter()
            .zip(&line.shares)
            .map(|(scope, share)| (scope.event.event, share.own.get(1)))
            .collect();
        line.ratios = Ratios::of_group(scope.profile, &counts);
    }
    // Equal rows stay in the order of their keys.
    lines.sort_by(|one, other| rows::compare(scope, view, &one.row, &other.row));
    let all = lines.len();
    lines.retain(|line| {
        let mut shares = scopes.iter().zip(&line.shares);
        shares.any(|(scope, share)| scope.percent(share.total) >= view.min_percent)
    });
    view.truncate(&mut lines);
    let hidden = all.saturating_sub(lines.len());
    (lines, hidden)
}

impl<'p> EventColumns<'_, 'p> {
    fn name(&self) -> &'p str {
        &self.scope.description.name
    }

    fn share(&self, line: &Line<'p>) -> Share {
        line.shares.get(self.place).copied().unwrap_or_default()
    }

    fn ratios(&self, line: &Line<'p>) -> Ratios {
        line.ratios.get(self.place).copied().unwrap_or_default()
    }

    fn text_names(&self) -> Vec<Cow<'static, str>> {
        let name = one_line(plain(self.name()));
        let per_cycle = self.per_cycle.then_some(Cow::Borrowed("per cycle"));
        let per_thousand = self.per_thousand.then_some(Cow::Borrowed("/1k instr"));
        let share = Cow::Owned(format!("{name} %"));
        let all = [Some(share), per_cycle, per_thousand];
        all.into_iter().flatten().collect()
    }

    fn text(&self, line: &Line<'p>) -> Vec<Value<'p>> {
        let ratios = self.ratios(line);
        let share = Value::Percent(self.scope.percent(self.share(line).own));
        let per_cycle = self.per_cycle.then(|| ratios.per_cycle());
        let per_thousand = self.per_thousand.then(|| ratios.per_thousand());
        let all = [Some(share), per_cycle, per_thousand];
        all.into_iter().flatten().collect()
    }

    fn object(&self, line: &Line<'p>) -> Object<'p> {
        let name = [("event", self.name().into())];
        Object::of(name.into_iter().chain(self.values(line)))
    }

    fn csv_names(&self) -> Vec<Cow<'static, str>> {
        let name = |key| format!("{} {key}", self.name()).into();
        Self::KEYS.into_iter().map(name).collect()
    }

    fn csv(&self, line: &Line<'p>) -> Vec<Value<'p>> {
        self.values(line)
            .into_iter()
            .map(|(_, value)| value)
            .collect()
    }

    const KEYS: [&'static str; 8] = [
        "self",
        "total",
        "self_percent",
        "total_percent",
        "self_period",
        "total_period",
        "per_cycle",
        "per_1000_instructions",
    ];

    /// The values in JSON and CSV.
    fn values(&self, line: &Line<'p>) -> [(&'static str, Value<'p>); 8] {
        let Share { own, total } = self.share(line);
        let ratios = self.ratios(line);
        let values = [
            own.get(0).into(),
            total.get(0).into(),
            Value::Percent(self.scope.percent(own)),
            Value::Percent(self.scope.percent(total)),
            own.get(1).into(),
            total.get(1).into(),
            ratios.per_cycle(),
            ratios.per_thousand(),
        ];
        let mut values = values.into_iter();
        Self::KEYS.map(|key| (key, values.next().unwrap_or(Value::Absent)))
    }
}
