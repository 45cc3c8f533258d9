//! A flame graph in SVG: callers at the top, callees below them, with widths proportional to their shares.
//!
//! The file is self-contained. In a browser, its script zooms and searches; other viewers show the picture only.

use std::io::{self, Write};

use varid_model::Layer;
use varid_recording::terminal::one_line;

use super::{
    Content, ExportFormat, FormatMeasures,
    markup::escape,
    palette::style_sheet,
    walk::{Walk, plain},
};
use crate::{
    scope::percent,
    shares::{Share, StackWeights},
    short_name,
    stacks::StackId,
    unit::Unit,
};

/// Stacks with a smaller share are not drawn. This is half a pixel on a wide screen.
const MIN_PERCENT: f64 = 0.05;
/// Deeper frames are not drawn.
const MAX_DEPTH: usize = 1_000;
/// Height of a row in pixels, and of its text's baseline.
const ROW: usize = 17;
const BASELINE: usize = 12;
/// Margins in pixels: above and below the frames, and beside them.
const ABOVE: usize = 100;
const BELOW: usize = 10;
const BESIDE: usize = 10;
/// Width of the picture if the viewer does not scale it.
const WIDTH: usize = 1_200;
/// Width of a letter in pixels.
const LETTER: f64 = 7.0;
/// Room for the title, in pixels at the size of the other letters.
const HEADING: f64 = 900.0;

const STYLE: &str = include_str!("flamegraph.css");
const SCRIPT: &str = include_str!("flamegraph.js");

/// A frame in the picture.
struct Frame {
    stack: StackId,
    share: Share,
    /// Position of its left side, as a weight.
    start: u64,
    depth: usize,
}

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "flamegraph",
    aliases: &["svg"],
    about: "A flame graph in SVG; a browser zooms and searches in it",
    endings: &[".svg"],
    needs: &[],
    measures: FormatMeasures::One,
    content: Content::Text,
    write: |input, out| Ok(write(&input.walk, out)?),
};

/// Writes the picture.
fn write(walk: &Walk, out: &mut dyn Write) -> io::Result<()> {
    let (weights, all) = (walk.weights(), walk.all());
    let counted = format!(
        "{} {}",
        walk.measures.count(all),
        walk.measures.count_unit()
    );
    let picture = Picture {
        walk,
        weights,
        all: walk.value(all),
    };
    let (frames, deeper) = picture.frames();
    let depth = frames.iter().map(|frame| frame.depth).max();
    let rows = depth.map_or(1, |depth| depth.saturating_add(2));
    let height = rows.saturating_mul(ROW).saturating_add(ABOVE + BELOW);
    let title = walk.title();
    let heading = escape(&shortened(&title, HEADING));
    let title = escape(&title);
    let layers = style_sheet(|layer, colour| format!(".{layer} rect {{ fill: {colour}; }}\n"));
    writeln!(
        out,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{WIDTH}" height="{height}" id="flamegraph">
<title>{title}</title>
<style>{layers}{STYLE}</style>
<rect class="paper" width="100%" height="100%"/>
<text class="title" x="{BESIDE}" y="20">{heading}</text>
<text class="facts" x="{BESIDE}" y="36">{counted}; stacks below {MIN_PERCENT} % are not drawn{}</text>"#,
        if deeper {
            format!(", nor what is deeper than {MAX_DEPTH} frames")
        } else {
            String::new()
        },
    )?;
    picture.legend(out)?;
    writeln!(
        out,
        r#"<text class="facts" id="details" x="{BESIDE}" y="92"> </text>
<text class="button" id="reset" x="{BESIDE}" y="56" tabindex="0">Reset zoom</text>
<text class="button" id="search" x="100" y="56" tabindex="0">Search</text>
<text class="facts" id="matched" x="160" y="56"> </text>
<svg id="frames" x="{BESIDE}" y="0" width="{}" height="{height}">"#,
        WIDTH - 2 * BESIDE,
    )?;
    picture.draw_whole(out, &counted)?;
    for frame in &frames {
        let row = frame.depth.saturating_add(1).saturating_mul(ROW);
        picture.draw_frame(out, frame, row.saturating_add(ABOVE))?;
    }
    writeln!(
        out,
        "</svg>\n<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>"
    )
}

/// A rectangle with a name.
struct Rectangle<'r> {
    class: &'r str,
    name: &'r str,
    title: &'r str,
    /// Where it starts and how wide it is, of the value of all samples.
    start: u64,
    value: u64,
    y: usize,
}

struct Picture<'w, 'p> {
    walk: &'w Walk<'p>,
    weights: StackWeights<'p>,
    all: u64,
}

impl Picture<'_, '_> {
    /// Returns the frames that are wide enough, and whether deeper ones are omitted. Callers precede callees, and
    /// siblings are sorted by name.
    fn frames(&self) -> (Vec<Frame>, bool) {
        let (mut frames, mut deeper) = (Vec::new(), false);
        let roots = self.weights.tree().roots().collect();
        let mut waiting = vec![(roots, 0, 0)];
        while let Some((stacks, start, depth)) = waiting.pop() {
            if depth >= MAX_DEPTH {
                deeper = true;
                continue;
            }
            for frame in self.neighbours(stacks, start, depth) {
                let children: Vec<_> = self.weights.tree().children(frame.stack).collect();
                if !children.is_empty() {
                    waiting.push((children, frame.start, depth.saturating_add(1)));
                }
                frames.push(frame);
            }
        }
        (frames, deeper)
    }

    fn neighbours(&self, stacks: Vec<StackId>, start: u64, depth: usize) -> Vec<Frame> {
        let with_share = |stack| (stack, self.weights.share(stack));
        let wide = |share: &Share| percent(self.walk.value(share.total), self.all) >= MIN_PERCENT;
        let mut stacks: Vec<_> = stacks.into_iter().map(with_share).collect();
        stacks.retain(|(_, share)| wide(share));
        stacks.sort_by_cached_key(|(stack, _)| self.name(*stack));
        let mut at = start;
        let frame = |(stack, share): (StackId, Share)| {
            let start = at;
            at = at.saturating_add(self.walk.value(share.total));
            Frame {
                stack,
                share,
                start,
                depth,
            }
        };
        stacks.into_iter().map(frame).collect()
    }

    fn name(&self, stack: StackId) -> &str {
        let frame = self.walk.profile.stacks.frame(stack);
        let symbol = frame.and_then(|frame| self.walk.symbol_of(frame));
        symbol.map_or("", |symbol| symbol.name.as_str())
    }

    /// Draws the rectangle below all frames.
    fn draw_whole(&self, out: &mut dyn Write, counted: &str) -> io::Result<()> {
        let rectangle = Rectangle {
            class: "all",
            name: "all",
            title: &format!("all\n{counted}, 100.00 %"),
            start: 0,
            value: self.all,
            y: ABOVE,
        };
        self.draw(out, &rectangle)
    }

    fn draw_frame(&self, out: &mut dyn Write, frame: &Frame, y: usize) -> io::Result<()> {
        let weight = frame.share.total;
        let value = self.walk.value(weight);
        let layer = self.walk.layer(Some(frame.stack)).name();
        let name = plain(self.name(frame.stack));
        let measures = &self.walk.measures;
        let (count, unit) = (measures.count(weight), measures.count_unit());
        let period = match measures.are_samples() {
            true => format!(
                ", {} {}",
                weight.get(1),
                Unit::of(self.walk.description).name()
            ),
            false => String::new(),
        };
        let title = format!(
            "{name}\n{layer}: {count} {unit}, {:.2} %{period}",
            percent(value, self.all),
        );
        let rectangle = Rectangle {
            class: layer,
            name: &name,
            title: &title,
            start: frame.start,
            value,
            y,
        };
        self.draw(out, &rectangle)
    }

    /// Formats the shorter forms of a name as attributes for the script, if there are any.
    fn forms(name: &str) -> String {
        let forms = short_name::forms(name).into_iter().enumerate();
        let forms =
            forms.map(|(number, form)| format!(r#" data-form{number}="{}""#, escape(&form)));
        forms.collect()
    }

    fn draw(&self, out: &mut dyn Write, rectangle: &Rectangle) -> io::Result<()> {
        let Rectangle {
            class,
            name,
            title,
            start,
            value,
            y,
        } = *rectangle;
        let (x, width) = (percent(start, self.all), percent(value, self.all));
        #[allow(clippy::cast_precision_loss)] // of pixels
        let pixels = width / 100.0 * (WIDTH - 2 * BESIDE) as f64;
        let text = y.saturating_add(BASELINE);
        writeln!(
            out,
            r#"<g class="{class}"{}><title>{}</title><rect x="{x:.4}%" y="{y}" width="{width:.4}%" height="{}"/><text x="{x:.4}%" y="{text}" dx="3">{}</text></g>"#,
            Self::forms(name),
            escape(title),
            ROW - 1,
            escape(&shortened(name, pixels)),
        )
    }

    /// Writes a legend of the layers with their own shares.
    fn legend(&self, out: &mut dyn Write) -> io::Result<()> {
        let walk = self.walk;
        let layer = |frame| walk.symbol_of(frame).map(|symbol| symbol.layer);
        let shares = self.weights.by_frame(layer);
        let mut x = BESIDE;
        for layer in Layer::ALL {
            let share = shares.get(&layer).copied().unwrap_or_default();
            let text = format!(
                "{} {:.1} %",
                layer.name(),
                percent(walk.value(share.own), self.all)
            );
            writeln!(
                out,
                r#"<g class="{}"><rect x="{x}" y="63" width="12" height="12"/><text x="{}" y="73">{text}</text></g>"#,
                layer.name(),
                x.saturating_add(16),
            )?;
            x = x
                .saturating_add(text.len().saturating_mul(8))
                .saturating_add(26);
        }
        Ok(())
    }
}

/// Returns the longest form of a name that fits, or the start of the shortest one. Empty if the space is too small.
fn shortened(name: &str, pixels: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // A negative or very large value saturates.
    let letters = ((pixels - 6.0) / LETTER) as usize;
    let fits = |form: &str| form.chars().count() <= letters;
    if fits(name) {
        return one_line(name);
    }
    let forms = short_name::forms(name);
    if let Some(form) = forms.iter().find(|form| fits(form)) {
        return one_line(form);
    }
    if letters < 3 {
        return String::new();
    }
    let shortest = forms.last().map_or(name, |form| form.as_ref());
    let shown: String = shortest.chars().take(letters.saturating_sub(2)).collect();
    format!("{shown}..")
}
