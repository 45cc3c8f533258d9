//! Selects the shown lines of a method.

use std::collections::BTreeSet;

use super::annotation::{AnnotateRequest, AnnotatedLine, Annotation};
use crate::weights::SampleWeight;

/// Reduces an annotation to the requested lines: all lines of the method, or the hottest with their context.
/// Instructions without a line are selected individually.
pub fn select(annotation: &mut Annotation, request: &AnnotateRequest) {
    let percent_of = annotation.percent_of;
    let value = |weight: SampleWeight| percent_of.value(weight);
    let least = request.limit.map(|limit| {
        let mut values: Vec<(u64, u64)> = annotation
            .lines()
            .flat_map(|line| {
                let of =
                    |share: &crate::shares::SampleShare| (value(share.own), value(share.total));
                match line.number {
                    Some(_) => vec![of(&line.share)],
                    None => line
                        .instructions
                        .iter()
                        .map(|found| of(&found.share))
                        .collect(),
                }
            })
            .collect();
        values.sort_unstable_by(|one, other| other.cmp(one));
        values.truncate(limit);
        let least = values.last().copied();
        // Rows without samples are never hot.
        least.map_or((u64::MAX, u64::MAX), |least| least.max((0, 1)))
    });
    // Limit the context, because line numbers are not trusted and the lines around each are enumerated.
    let context = request.context.min(1 << 12);
    let mut left = request.limit.unwrap_or(usize::MAX);
    for file in &mut annotation.files {
        let is_hot = |line: &AnnotatedLine, left: &mut usize| match least {
            None => line.is_of_method,
            Some(least) => {
                let hot = line.is_of_method
                    && (value(line.share.own), value(line.share.total)) >= least
                    && *left > 0;
                *left = left.saturating_sub(usize::from(hot));
                hot
            }
        };
        let mut shown = BTreeSet::new();
        for line in &mut file.lines {
            let Some(number) = line.number else {
                keep_hot(line, least, context, value);
                continue;
            };
            if is_hot(line, &mut left) {
                let context = u32::try_from(context).unwrap_or(u32::MAX);
                let first = number.saturating_sub(context);
                shown.extend(first..=number.saturating_add(context));
            } else if least.is_some() {
                // Context lines are shown without instructions.
                line.instructions.clear();
                line.inlined.clear();
            }
        }
        file.lines.retain(|line| match line.number {
            Some(number) => shown.contains(&number),
            None => !line.instructions.is_empty() || !line.share.total.is_zero(),
        });
    }
    annotation.files.retain(|file| !file.lines.is_empty());
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

/// Keeps the hot instructions without a line, with their context.
fn keep_hot(
    line: &mut AnnotatedLine,
    least: Option<(u64, u64)>,
    context: usize,
    value: impl Fn(SampleWeight) -> u64,
) {
    let Some(least) = least else { return };
    let mut shown = BTreeSet::new();
    for (place, found) in line.instructions.iter().enumerate() {
        let share = &found.share;
        if (value(share.own), value(share.total)) >= least {
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
