//! Selects the shown lines of a method.

use std::{collections::BTreeSet, ops::RangeInclusive};

use super::annotation::{AnnotateRequest, AnnotatedFile, AnnotatedLine, Annotation};
use crate::{measures::ShownMeasures, shares::Share};

/// The most context lines. Line numbers are not trusted, and the lines around each are enumerated.
const MAX_CONTEXT: u16 = 1 << 12;

/// Reduces an annotation to the requested lines: all lines of the method, or the hottest with their context.
/// Instructions without a line are selected individually.
pub fn select(annotation: &mut Annotation, request: &AnnotateRequest) {
    let mut hottest = request.limit.map(|limit| Hottest::of(annotation, limit));
    let context = u16::try_from(request.context).unwrap_or(MAX_CONTEXT);
    let context = context.min(MAX_CONTEXT);
    for file in &mut annotation.files {
        select_lines(file, context, hottest.as_mut());
    }
    annotation.files.retain(|file| !file.lines.is_empty());
}

/// Reduces a file to the hottest lines, or to all of the method, with their context.
fn select_lines(file: &mut AnnotatedFile, context: u16, mut hottest: Option<&mut Hottest>) {
    let mut shown = BTreeSet::new();
    for line in &mut file.lines {
        let hottest = hottest.as_deref_mut();
        match (line.number, hottest) {
            (Some(number), None) if line.is_of_method => {
                shown.extend(around(number, context));
            }
            (Some(number), Some(hottest)) => {
                if hottest.takes(line) {
                    shown.extend(around(number, context));
                } else {
                    // Context lines are shown without instructions.
                    line.instructions.clear();
                    line.compiled.clear();
                    line.inlined.clear();
                }
            }
            (None, Some(hottest)) => hottest.retain_instructions(line, context),
            (_, None) => {}
        }
    }
    file.lines.retain(|line| match line.number {
        Some(number) => shown.contains(&number),
        None => !line.instructions.is_empty() || !line.share.total.is_zero(),
    });
}

/// Returns a line with its context.
fn around(number: u32, context: u16) -> RangeInclusive<u32> {
    let context = context.into();
    number.saturating_sub(context)..=number.saturating_add(context)
}

/// Reduces an annotation of the whole method to the hottest lines with their context.
pub fn keep_hottest(annotation: &mut Annotation, lines: usize, context: usize) {
    let request = AnnotateRequest {
        limit: Some(lines),
        context,
        ..AnnotateRequest::default()
    };
    select(annotation, &request);
}

/// The values by which lines are compared: own samples first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Heat {
    own: u64,
    total: u64,
}

impl Heat {
    fn of(share: &Share, measures: &ShownMeasures) -> Self {
        Self {
            own: measures.value(share.own),
            total: measures.value(share.total),
        }
    }
}

/// Selects the hottest lines, and the hottest instructions without a line.
struct Hottest {
    measures: ShownMeasures,
    /// None if nothing is hot.
    least: Option<Heat>,
    /// The number of lines that can still be taken.
    left: usize,
}

impl Hottest {
    fn of(annotation: &Annotation, limit: usize) -> Self {
        let measures = &annotation.measures;
        let of_line = |line: &AnnotatedLine| -> Vec<Heat> {
            let instructions = line.instructions.iter();
            match line.number {
                Some(_) => vec![Heat::of(&line.share, measures)],
                None => instructions
                    .map(|found| Heat::of(&found.share, measures))
                    .collect(),
            }
        };
        let mut all: Vec<Heat> = annotation.lines().flat_map(of_line).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.truncate(limit);
        // Rows without samples are never hot.
        let minimum = Heat { own: 0, total: 1 };
        Self {
            measures: measures.clone(),
            least: all.last().map(|least| *least.max(&minimum)),
            left: limit,
        }
    }

    fn is_hot(&self, share: &Share) -> bool {
        let heat = Heat::of(share, &self.measures);
        self.least.is_some_and(|least| heat >= least)
    }

    /// Returns true if a line of the method is among the hottest.
    fn takes(&mut self, line: &AnnotatedLine) -> bool {
        let takes = line.is_of_method && self.is_hot(&line.share) && self.left > 0;
        self.left = self.left.saturating_sub(usize::from(takes));
        takes
    }

    /// Retains the hot instructions without a line, with their context.
    fn retain_instructions(&self, line: &mut AnnotatedLine, context: u16) {
        let context = context.into();
        let mut shown = BTreeSet::new();
        for (place, found) in line.instructions.iter().enumerate() {
            if self.is_hot(&found.share) {
                let last = place.saturating_add(context);
                shown.extend(place.saturating_sub(context)..=last);
            }
        }
        let mut place = 0usize;
        line.instructions.retain(|_| {
            let stays = shown.contains(&place);
            place = place.saturating_add(1);
            stays
        });
    }
}
