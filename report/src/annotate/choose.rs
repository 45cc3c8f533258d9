//! Selects the methods of a request.

use std::collections::HashMap;

use varid_model::Layer;
use varid_recording::terminal::one_line;

use super::annotation::{AnnotateRequest, AnnotatedMethod, Candidate, Candidates};
use crate::{
    error::{Error, Result},
    frames::{ProfileSymbol, SymbolId},
    name_pattern::NamePattern,
    scope::Scope,
    shares::Share,
    short_name::{compiled_function, own, plain},
    weights::Weight,
};

/// The most candidates that are listed.
const MOST: usize = 40;

/// The selected methods.
pub enum Choice {
    One(SymbolId, Share),
    Several(Candidates),
}

/// Selects the method of a request.
///
/// # Errors
///
/// [`Error::NoMethod`]: no such method has samples.
pub fn choose(scope: &Scope, request: &AnnotateRequest) -> Result<Choice> {
    let selected = selected(scope, request);
    let Some(text) = &request.method else {
        let hottest = selected.iter().max_by_key(|(id, symbol, share)| {
            let own = scope.value(share.own);
            // If the weights are equal, prefer a symbol with a name, then the first one.
            (own, symbol.named, std::cmp::Reverse(*id))
        });
        return match hottest {
            Some((id, _, share)) => Ok(Choice::One(*id, *share)),
            None => Err(Error::NoMethod(format!(
                "no function has {}: 'varid report' says what was recorded",
                counted(scope)
            ))),
        };
    };
    let meant = meant(text, &selected);
    match meant[..] {
        [] => Err(Error::NoMethod(not_found(scope, text, &selected))),
        [(id, _, share)] => Ok(Choice::One(id, share)),
        _ => Ok(match one_method(scope, &meant) {
            Some((id, share)) => Choice::One(id, share),
            None => Choice::Several(candidates(scope, text, meant)),
        }),
    }
}

/// If all candidates are variants of one method that a runtime compiled several times, returns the hottest one with the
/// sum of the shares.
fn one_method(scope: &Scope, meant: &[Found]) -> Option<(SymbolId, Share)> {
    let mut functions = meant.iter().map(|(_, symbol, _)| {
        let is_compiled = symbol.run_time && !symbol.inlined;
        compiled_function(&symbol.name).filter(|_| is_compiled)
    });
    let first = functions.next()??;
    if functions.any(|function| function != Some(first)) {
        return None;
    }
    let is_one = |frame| {
        let id = scope.symbol_of(frame)?;
        meant.iter().any(|(one, ..)| *one == id).then_some(())
    };
    let share = scope.weights.by_frame(is_one).get(&()).copied()?;
    let hottest = meant
        .iter()
        .max_by_key(|(_, _, share)| scope.value(share.own))?;
    Some((hottest.0, share))
}

/// The percentages of hot methods: one of them suffices.
#[derive(Debug, Clone, Copy)]
pub struct LeastPercent {
    pub own: f64,
    pub total: f64,
}

/// Returns the methods with at least these percentages, sorted by descending own share. Kernel functions are skipped,
/// because there is no file with their code.
pub fn hottest(scope: &Scope, least: LeastPercent) -> Vec<(SymbolId, Share)> {
    let mut found = selected(scope, &AnnotateRequest::default());
    found.retain(|(_, symbol, share)| {
        let takes =
            scope.percent(share.own) >= least.own || scope.percent(share.total) >= least.total;
        symbol.layer != Layer::Kernel && takes
    });
    found.sort_by_key(|(id, _, share)| {
        let value = |weight: Weight| std::cmp::Reverse(scope.value(weight));
        (value(share.own), value(share.total), *id)
    });
    found
        .into_iter()
        .map(|(id, _, share)| (id, share))
        .collect()
}

type Found<'p> = (SymbolId, &'p ProfileSymbol, Share);

/// Returns the methods with samples that pass the request's filters.
fn selected<'p>(scope: &Scope<'p>, request: &AnnotateRequest) -> Vec<Found<'p>> {
    let frames = &scope.profile.frames;
    let shares = shares(scope);
    let selects = |symbol: &ProfileSymbol| {
        let image = request.image.as_ref().is_none_or(|wanted| {
            let image = frames.image(symbol.image);
            image.is_some_and(|image| image.name.contains(wanted))
        });
        let code = request.code.selects(symbol);
        symbol.marker.is_none() && image && code
    };
    let mut found: Vec<Found> = shares
        .into_iter()
        .filter_map(|(id, share)| Some((id, frames.symbol(id)?, share)))
        .filter(|(_, symbol, _)| selects(symbol))
        .collect();
    found.sort_by_key(|(id, ..)| *id);
    found
}

/// Returns the share of each symbol. The samples of inlined functions are also own samples of the function that they
/// were inlined into.
fn shares(scope: &Scope) -> HashMap<SymbolId, Share> {
    let (frames, stacks) = (&scope.profile.frames, &scope.profile.stacks);
    let mut shares = scope.weights.by_frame(|frame| scope.symbol_of(frame));
    for (id, share) in &mut shares {
        if frames.symbol(*id).is_some_and(|symbol| !symbol.inlined) {
            share.own = Weight::default();
        }
    }
    for stack in stacks.ids() {
        let own = scope.weights.share(stack).own;
        if own.is_zero() {
            continue;
        }
        let mut symbols = stacks
            .frames_of(stack)
            .filter_map(|frame| scope.symbol_of(frame));
        let whole = symbols.find(|id| frames.symbol(*id).is_some_and(|symbol| !symbol.inlined));
        if let Some(share) = whole.and_then(|whole| shares.get_mut(&whole)) {
            share.own.add(own);
        }
    }
    shares
}

/// Returns the candidates for a name. The whole name, its last part or the address take precedence, then a part of it,
/// then a regular expression. Functions precede the functions inlined into them that have such a name.
fn meant<'p>(text: &str, selected: &[Found<'p>]) -> Vec<Found<'p>> {
    let address = text.strip_prefix("0x");
    let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let pattern = NamePattern::new(text).ok();
    let names = |symbol: &'p ProfileSymbol| {
        std::iter::once(symbol.name.as_str()).chain(symbol.recorded.as_deref())
    };
    let whole = |symbol: &'p ProfileSymbol| {
        names(symbol).any(|name| name == text) || symbol.full_name() == text
    };
    let at = |symbol: &'p ProfileSymbol| {
        !symbol.inlined && !symbol.run_time && address == Some(symbol.start)
    };
    let plain = |symbol: &'p ProfileSymbol| names(symbol).any(|name| plain(name) == text);
    let last = |symbol: &'p ProfileSymbol| names(symbol).any(|name| own(name) == text);
    let part = |symbol: &'p ProfileSymbol| {
        names(symbol).any(|name| name.contains(text)) || symbol.full_name().contains(text)
    };
    let expression = |symbol: &'p ProfileSymbol| {
        let pattern = pattern.as_ref();
        pattern.is_some_and(|pattern| names(symbol).any(|name| pattern.matches(name)))
    };
    type Test<'t, 'p> = &'t dyn Fn(&'p ProfileSymbol) -> bool;
    let exact: [Test<'_, 'p>; 4] = [&whole, &at, &plain, &last];
    let loose: [Test<'_, 'p>; 2] = [&part, &expression];
    for tests in [&exact[..], &loose] {
        for inlined in [false, true] {
            for test in tests {
                let is_meant =
                    |(_, symbol, _): &&Found<'p>| symbol.inlined == inlined && test(symbol);
                let found: Vec<Found> = selected.iter().filter(is_meant).copied().collect();
                if !found.is_empty() {
                    return found;
                }
            }
        }
    }
    Vec::new()
}

/// Returns what the values count: `samples`, or the name of the measure.
fn counted<'s>(scope: &'s Scope) -> &'s str {
    let measure = scope.measures.list.first();
    measure.map_or("", |measure| &measure.name)
}

fn not_found(scope: &Scope, text: &str, selected: &[Found]) -> String {
    let counted = counted(scope);
    let mut hottest: Vec<_> = selected.iter().collect();
    hottest.sort_by_key(|(.., share)| std::cmp::Reverse(scope.count(share.own)));
    let names: Vec<_> = hottest
        .iter()
        .take(3)
        .map(|(_, symbol, _)| symbol.name.as_str())
        .collect();
    let known = match names[..] {
        [] => format!("no function has {counted}"),
        _ => format!("with {counted} there are {} and others", names.join(", ")),
    };
    one_line(&format!(
        "no function with {counted} is called '{text}', in whole or in part: {known}; 'varid report --by symbol' lists them"
    ))
}

fn candidates(scope: &Scope, text: &str, mut found: Vec<Found>) -> Candidates {
    found.sort_by_key(|(id, _, share)| {
        let value = |weight: Weight| std::cmp::Reverse(scope.value(weight));
        (value(share.own), value(share.total), *id)
    });
    let more = found.len().saturating_sub(MOST);
    let candidate = |(id, _, share): &Found| Candidate {
        method: described(scope, *id, *share),
        own_percent: scope.percent(share.own),
        total_percent: scope.percent(share.total),
    };
    Candidates {
        name: text.to_owned(),
        counted: counted(scope).to_owned(),
        methods: found.iter().take(MOST).map(candidate).collect(),
        more,
    }
}

/// Describes a symbol with this share.
pub fn described(scope: &Scope, id: SymbolId, share: Share) -> AnnotatedMethod {
    let frames = &scope.profile.frames;
    let symbol = frames.symbol(id);
    let image = symbol.and_then(|symbol| frames.image(symbol.image));
    let start = symbol.filter(|symbol| !symbol.inlined && !symbol.run_time);
    AnnotatedMethod {
        name: symbol.map_or_else(String::new, |symbol| symbol.name.clone()),
        signature: symbol.and_then(|symbol| symbol.signature.clone()),
        recorded: symbol.and_then(|symbol| symbol.recorded.clone()),
        image: image.map_or_else(String::new, |image| image.name.clone()),
        path: image.and_then(|image| image.path.clone()),
        layer: symbol.map_or(Layer::Native, |symbol| symbol.layer),
        inlined: symbol.is_some_and(|symbol| symbol.inlined),
        addresses: start.map(|symbol| symbol.start..symbol.start),
        code: None,
        share,
        approximate: Weight::default(),
    }
}
