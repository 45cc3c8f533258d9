//! Snapshots of each view on terminals of 80 and of 160 columns.

use super::dim::{by_dim, dim_options};
use super::*;
use varid_report::TreeDirection;

/// A view with all of its rows at both widths.
fn at_both_widths(name: &str, fixture: &Fixture, options: &Options, view: &View) {
    for width in [80, 160] {
        let view = View {
            text: TextLimits {
                width: Some(width),
                ..view.text
            },
            ..view.clone()
        };
        let text = fixture.render(options, &view, OutputFormat::Text);
        insta::assert_snapshot!(format!("{name}_{width}"), text);
    }
}

#[test]
fn tables_fit_terminals() {
    let fixture = Fixture::full();
    let view = View::default();
    at_both_widths("overview", &fixture, &Options::default(), &view);
    for group in [
        GroupBy::Image,
        GroupBy::Symbol,
        GroupBy::Thread,
        GroupBy::Process,
        GroupBy::Service,
        GroupBy::Layer,
    ] {
        let name = format!("{group:?}").to_lowercase();
        at_both_widths(&name, &fixture, &Options::default(), &by(group));
    }
}

#[test]
fn lines_fit_terminals() {
    let mut options = Options::default();
    options.names.lines = true;
    options.names.inlined = true;
    let fixture = approximate::fixture();
    at_both_widths("line", &fixture, &options, &by(GroupBy::Line));
}

#[test]
fn counted_calls_fit_terminals() {
    let fixture = measures::calls();
    let view = measures::named(&["calls", "returns", "unwinds"], by(GroupBy::Symbol).table);
    at_both_widths("calls", &fixture, &Options::default(), &view);
}

#[test]
fn events_side_by_side_fit_terminals() {
    let view = View {
        table: ReportTable::EVENTS,
        ..View::default()
    };
    at_both_widths("event", &events::recorded(), &Options::default(), &view);
}

#[test]
fn frames_of_threads_fit_terminals() {
    at_both_widths("vm_frame", &Fixture::full(), &dim_options(), &by_dim());
}

#[test]
fn call_graphs_and_trees_fit_terminals() {
    let (fixture, options) = (Fixture::full(), Options::default());
    at_both_widths("callgraph", &fixture, &options, &callgraph());
    let view = View {
        table: ReportTable::tree(TreeDirection::BottomUp),
        ..View::default()
    };
    at_both_widths("bottom_up", &fixture, &options, &view);
}
