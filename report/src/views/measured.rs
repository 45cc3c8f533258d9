//! The columns of named measures, for the rows of any table.

use crate::{
    columns::{Column, Object, Value},
    measures::ShownMeasures,
    scope::Scope,
    shares::Share,
    weights::Weight,
};

/// A row with a share.
pub trait Measured {
    /// The own and total share.
    fn share(&self) -> Share;
}

/// Makes the columns of each measure. Text has all columns of the first measure, and only the own values of the others.
pub fn columns<'p, R: Measured>(measures: &ShownMeasures) -> Vec<Column<'p, R>> {
    let mut columns = Vec::new();
    for (place, measure) in measures.list.iter().enumerate() {
        let csv = |part: &str| format!("{} {part}", measure.name);
        let own = Column::of_measure(own, place).csv(csv("self"));
        let own_percent = Column::of_measure(own_percent, place).csv(csv("self_percent"));
        let total = Column::of_measure(total, place).csv(csv("total"));
        let total_percent = Column::of_measure(total_percent, place).csv(csv("total_percent"));
        let own = own.text(measure.name.clone());
        match place {
            0 => columns.extend([
                own,
                own_percent.text("%"),
                total.text("total"),
                total_percent.text("%"),
            ]),
            _ => columns.extend([own, own_percent, total, total_percent]),
        }
    }
    columns.push(Column::new(object).json(KEY));
    columns
}

/// The JSON key of a row's measures.
const KEY: &str = "measures";

fn own<'p, R: Measured>(_: &Scope<'p>, row: &R, place: usize) -> Value<'p> {
    row.share().own.get(place).into()
}

fn total<'p, R: Measured>(_: &Scope<'p>, row: &R, place: usize) -> Value<'p> {
    row.share().total.get(place).into()
}

fn own_percent<'p, R: Measured>(scope: &Scope<'p>, row: &R, place: usize) -> Value<'p> {
    percent(place, row.share().own, scope.all)
}

fn total_percent<'p, R: Measured>(scope: &Scope<'p>, row: &R, place: usize) -> Value<'p> {
    percent(place, row.share().total, scope.all)
}

fn object<'p, R: Measured>(scope: &Scope<'p>, row: &R) -> Value<'p> {
    let Share { own, total } = row.share();
    each(scope, |place| {
        Object::of([
            ("self", own.get(place).into()),
            ("total", total.get(place).into()),
            ("self_percent", percent(place, own, scope.all)),
            ("total_percent", percent(place, total, scope.all)),
        ])
    })
}

/// The measures of a caller or callee in JSON: values and their percentages of the method's total.
pub fn of_neighbour<'p>(
    scope: &Scope<'p>,
    weight: Weight,
    all: Weight,
) -> (&'static str, Value<'p>) {
    let object = |place| {
        Object::of([
            ("total", weight.get(place).into()),
            ("percent", percent(place, weight, all)),
        ])
    };
    (KEY, each(scope, object))
}

/// Makes an object with a key for each measure.
fn each<'p>(scope: &Scope<'p>, object: impl Fn(usize) -> Object<'p>) -> Value<'p> {
    let measures = scope.measures.list.iter().enumerate();
    let values = measures.map(|(place, measure)| {
        let name = measure.name.clone().into();
        (name, Value::Object(object(place)))
    });
    Value::Object(Object::named(values))
}

fn percent<'p>(place: usize, part: Weight, all: Weight) -> Value<'p> {
    Value::Percent(crate::scope::percent(part.get(place), all.get(place)))
}
