//! Validates the JSON against its schema.

use super::dim::{by_dim, dim_options};
use super::*;
use varid_report::TreeDirection;

#[test]
fn json_keeps_to_its_schema() {
    let schema = include_str!("../../../schema/report.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let fixture = Fixture::full();
    let tables = [
        GroupBy::Image,
        GroupBy::Symbol,
        GroupBy::Line,
        GroupBy::Thread,
        GroupBy::Process,
        GroupBy::Service,
        GroupBy::Layer,
        GroupBy::Activity,
    ]
    .map(ReportTable::by);
    for table in tables
        .into_iter()
        .chain([
            ReportTable::OVERVIEW,
            ReportTable::CALLGRAPH,
            ReportTable::EVENTS,
        ])
        .chain([TreeDirection::TopDown, TreeDirection::BottomUp].map(ReportTable::tree))
    {
        for percent_of in [PercentOf::Period, PercentOf::Samples] {
            let view = View {
                table,
                percent_of,
                ..View::default()
            };
            let report = json(&fixture, &Options::default(), &view);
            valid(&schema, &schema, &report).unwrap_or_else(|wrong| panic!("{table:?}: {wrong}"));
        }
    }
    let counted = super::measures::calls();
    for table in [
        ReportTable::OVERVIEW,
        ReportTable::by(GroupBy::Thread),
        ReportTable::CALLGRAPH,
        ReportTable::tree(TreeDirection::TopDown),
    ] {
        let view = super::measures::named(&["calls", "samples"], table);
        let report = json(&counted, &Options::default(), &view);
        valid(&schema, &schema, &report).unwrap_or_else(|wrong| panic!("{table:?}: {wrong}"));
    }
    let report = json(&fixture, &dim_options(), &by_dim());
    assert!(report["rows"].as_array().is_some_and(|rows| rows.len() > 5));
    valid(&schema, &schema, &report).unwrap_or_else(|wrong| panic!("dim: {wrong}"));
    let mut report = json(&fixture, &Options::default(), &callgraph());
    report["rows"][0]["callers"] = serde_json::json!([{"samples": "1"}]);
    assert!(
        valid(&schema, &schema, &report).is_err(),
        "the checker finds faults"
    );
}

/// Validates a value against the subset of JSON Schema that the schema uses. Other keywords are errors.
pub fn valid(
    root: &serde_json::Value,
    schema: &serde_json::Value,
    value: &serde_json::Value,
) -> Result<(), String> {
    use serde_json::Value;
    let wrong = |what: &str| Err(format!("{what}: {value} against {schema}"));
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let pointer = wanted.as_str().unwrap().trim_start_matches('#');
                valid(root, root.pointer(pointer).unwrap(), value)?;
            }
            "type" => {
                let fits = match wanted.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "number" => value.is_number(),
                    "integer" => value.is_u64() || value.is_i64(),
                    _ => false,
                };
                if !fits {
                    return wrong("type");
                }
            }
            "enum" if !wanted.as_array().unwrap().contains(value) => return wrong("enum"),
            "minimum" if value.as_f64() < wanted.as_f64() => return wrong("minimum"),
            "enum" | "minimum" => {}
            "anyOf" => {
                let mut kinds = wanted.as_array().unwrap().iter();
                if !kinds.any(|kind| valid(root, kind, value).is_ok()) {
                    return wrong("none of");
                }
            }
            "required" => {
                for key in wanted.as_array().unwrap() {
                    if value.get(key.as_str().unwrap()).is_none() {
                        return wrong(&format!("missing {key}"));
                    }
                }
            }
            "items" => {
                for item in value.as_array().unwrap() {
                    valid(root, wanted, item)?;
                }
            }
            "properties" => {
                for (key, wanted) in wanted.as_object().unwrap() {
                    value
                        .get(key)
                        .map_or(Ok(()), |value| valid(root, wanted, value))?;
                }
            }
            "additionalProperties" => {
                for (key, value) in value.as_object().unwrap() {
                    if schema
                        .get("properties")
                        .is_some_and(|known| known.get(key).is_some())
                    {
                        continue;
                    }
                    match wanted {
                        Value::Bool(false) => return wrong(&format!("unknown {key}")),
                        wanted => valid(root, wanted, value)?,
                    }
                }
            }
            other => return Err(format!("the schema uses {other}, which is not checked")),
        }
    }
    Ok(())
}
