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

/// The meaning of a row's own value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnValue {
    /// The leaf is the row's.
    Leaf,
    /// The outermost frame is the row's: in bottom-up trees.
    Outermost,
}

impl OwnValue {
    /// Its keys in JSON and CSV: the value, and its percentage.
    const fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Leaf => ["self", "self_percent"],
            Self::Outermost => ["outermost", "outermost_percent"],
        }
    }
}

/// Makes the columns of each measure. Text has all columns of the first measure, and only the own values of the others.
/// Bottom-up, it has the totals instead of the own values.
pub fn columns<'p, R: Measured>(measures: &ShownMeasures, of: OwnValue) -> Vec<Column<'p, R>> {
    let mut columns = Vec::new();
    let [own_key, percent_key] = of.keys();
    for (place, measure) in measures.list.iter().enumerate() {
        let csv = |part: &str| format!("{} {part}", measure.name);
        let own = Column::of_measure(own, place).csv(csv(own_key));
        let own_percent = Column::of_measure(own_percent, place).csv(csv(percent_key));
        let total = Column::of_measure(total, place).csv(csv("total"));
        let total_percent = Column::of_measure(total_percent, place).csv(csv("total_percent"));
        let (own, total) = match of {
            OwnValue::Leaf => (own.text(measure.name.clone()), total),
            OwnValue::Outermost => (own, total.text(measure.name.clone())),
        };
        match place {
            0 if of == OwnValue::Leaf => columns.extend([
                own,
                own_percent.text("%"),
                total.text("total"),
                total_percent.text("%"),
            ]),
            _ => columns.extend([own, own_percent, total, total_percent]),
        }
    }
    let object = match of {
        OwnValue::Leaf => Column::new(object_of_leaf),
        OwnValue::Outermost => Column::new(object_of_outermost),
    };
    columns.push(object.json(KEY));
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

fn object_of_leaf<'p, R: Measured>(scope: &Scope<'p>, row: &R) -> Value<'p> {
    object(scope, row.share(), OwnValue::Leaf)
}

fn object_of_outermost<'p, R: Measured>(scope: &Scope<'p>, row: &R) -> Value<'p> {
    object(scope, row.share(), OwnValue::Outermost)
}

fn object<'p>(scope: &Scope<'p>, share: Share, of: OwnValue) -> Value<'p> {
    let Share { own, total } = share;
    let [own_key, percent_key] = of.keys();
    each(scope, |place| {
        Object::of([
            (own_key, own.get(place).into()),
            ("total", total.get(place).into()),
            (percent_key, percent(place, own, scope.all)),
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
