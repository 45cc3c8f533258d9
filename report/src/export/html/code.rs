//! The code in a page: the lines and instructions of the hottest methods with their samples.

use std::{io::Write, sync::Arc};

use serde::ser::{SerializeSeq, Serializer};

use super::data::SymbolNumbers;
use crate::{
    annotate::{
        AnnotateRequest, Annotation, Annotator, LeastPercent, annotation_json, hottest,
        keep_hottest,
    },
    error::Result,
    export::{
        ExportRequest,
        walk::{Walk, plain},
    },
    frames::SymbolId,
    scope::Scope,
    shares::Share,
    view::View,
};

/// The most methods with code in a page.
const MOST_METHODS: usize = 100;
/// The minimum percentages of a method with code.
const LEAST: LeastPercent = LeastPercent {
    own: 0.1,
    total: 1.0,
};
/// A method with more lines and instructions is reduced to its hottest lines with their context.
const MOST_ROWS: usize = 2000;
const HOTTEST_LINES: usize = 200;
/// Number of lines before and after each shown line, as in 'varid annotate'.
const CONTEXT: usize = 2;

/// Writes a JSON list: for each method, the index of its symbol, and its annotation as in `varid annotate --format json`.
pub fn write(
    walk: &Walk,
    request: &ExportRequest,
    symbols: &SymbolNumbers,
    out: &mut dyn Write,
) -> Result<()> {
    let view = View {
        percent_of: request.weigh,
        ..View::default()
    };
    let measures = walk.measures.clone();
    let scope = Scope::with_measures(walk.profile, &view, walk.event, measures);
    let request = AnnotateRequest {
        percent_of: request.weigh,
        sources: request.sources.clone(),
        context: CONTEXT,
        ..AnnotateRequest::default()
    };
    let mut annotator = Annotator::new(&scope, &request)?;
    let mut json = serde_json::Serializer::new(out);
    let mut list = json.serialize_seq(None).map_err(std::io::Error::from)?;
    for (number, id, share) in methods(walk, &scope, symbols) {
        let mut annotation = annotator.annotate(id, share)?;
        let rows = annotation.files.iter().flat_map(|file| &file.lines);
        let rows = rows.fold(0usize, |rows, line| {
            rows.saturating_add(line.instructions.len())
                .saturating_add(1)
        });
        if rows > MOST_ROWS {
            keep_hottest(&mut annotation, HOTTEST_LINES, CONTEXT);
            annotation.notes.push(format!(
                "of {rows} lines and instructions only those around the {HOTTEST_LINES} hottest are here; 'varid annotate' shows all"
            ));
        }
        make_plain(&mut annotation);
        let method = (number, annotation_json(&annotation));
        list.serialize_element(&method)
            .map_err(std::io::Error::from)?;
    }
    Ok(SerializeSeq::end(list).map_err(std::io::Error::from)?)
}

/// Makes names printable in one line, like all names in a page. Sources and instructions already are.
fn make_plain(annotation: &mut Annotation) {
    let text = |text: &mut String| *text = plain(text).into_owned();
    annotation.notes.iter_mut().for_each(text);
    annotation.code_file.iter_mut().for_each(text);
    annotation.method.name = plain(&annotation.method.name).into_owned();
    annotation.method.recorded.iter_mut().for_each(text);
    for file in &mut annotation.files {
        file.found.iter_mut().for_each(text);
        file.name = file.name.as_ref().map(|name| Arc::from(plain(name)));
        for inlined in file.lines.iter_mut().flat_map(|line| &mut line.inlined) {
            text(&mut inlined.function);
            if let Some((file, _)) = &mut inlined.line {
                *file = Arc::from(plain(file));
            }
        }
    }
}

/// Returns the hottest methods with the indices of their symbols, grouped by image.
fn methods(walk: &Walk, scope: &Scope, symbols: &SymbolNumbers) -> Vec<(u32, SymbolId, Share)> {
    let numbered = |(id, share)| Some((symbols.get(id)?, id, share));
    let all = hottest(scope, LEAST).into_iter().filter_map(numbered);
    let mut methods: Vec<_> = all.take(MOST_METHODS).collect();
    methods.sort_by_key(|(_, id, _)| walk.symbol(*id).map(|symbol| symbol.image));
    methods
}
