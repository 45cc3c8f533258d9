//! The parameters of a core: their values, and what these change in its description.
//!
//! `[parameters]` has the parameters' defaults, each `[[when]]` the values that hold if some parameters have some values.

use std::collections::BTreeMap;

use varid_description::{Error, Node, Origin, Place, Result, Setting, Table, Value, merge};
use varid_model::nearest;

/// The values of parameters, by their names.
pub type Values = BTreeMap<String, Value>;

/// The whole description with the parameters' values, and what they are.
pub struct Configured {
    /// The description, without `parameters` and `when`.
    pub table: Table,
    /// The parameters' values.
    pub values: Values,
}

/// A parameter.
struct Parameter {
    value: Value,
    choices: Vec<Value>,
    aliases: Vec<String>,
}

/// Puts settings over a description: those of parameters first, then what these change, then all other settings.
pub fn configure(file: &str, mut table: Table, settings: &[Setting]) -> Result<Configured> {
    let mut parameters = match table.remove("parameters") {
        Some(node) => declared(file, node)?,
        None => BTreeMap::new(),
    };
    let mut others = Vec::new();
    for setting in settings {
        match find(&mut parameters, setting.word()) {
            Some(parameter) => set(parameter, setting)?,
            None => others.push(setting),
        }
    }
    if let Some(unknown) = others.iter().find(|setting| setting.word().is_some()) {
        let names: Vec<_> = parameters.keys().map(String::as_str).collect();
        return Err(unknown_setting(&unknown.key(), &names, &table));
    }
    let values: Values = parameters
        .into_iter()
        .map(|(name, parameter)| (name, parameter.value))
        .collect();
    if let Some(node) = table.remove("when") {
        for change in changes(file, node)? {
            if change.applies(file, &values)? {
                merge(&mut table, &change.over);
            }
        }
    }
    for setting in others {
        setting.apply(&mut table)?;
    }
    Ok(Configured { table, values })
}

fn find<'p>(
    parameters: &'p mut BTreeMap<String, Parameter>,
    word: Option<&str>,
) -> Option<&'p mut Parameter> {
    let word = word?;
    let is_meant = |name: &str, parameter: &Parameter| {
        name == word || parameter.aliases.iter().any(|alias| alias == word)
    };
    let mut parameters = parameters.iter_mut();
    let found = parameters.find(|(name, parameter)| is_meant(name, parameter));
    found.map(|(_, parameter)| parameter)
}

fn set(parameter: &mut Parameter, setting: &Setting) -> Result<()> {
    let value = setting.node().value;
    if parameter.choices.contains(&value) {
        parameter.value = value;
        return Ok(());
    }
    let choices: Vec<_> = parameter.choices.iter().map(plain).collect();
    let problem = format!("'{}' is not one of {}", plain(&value), choices.join(", "));
    Err(Error::of_setting(setting.key(), problem))
}

/// A value without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

fn unknown_setting(key: &str, names: &[&str], table: &Table) -> Error {
    let tables = table.iter();
    let tables = tables.filter(|(_, node)| matches!(node.value, Value::Table(_)));
    let tables: Vec<_> = tables.map(|(key, _)| format!("{key}.KEY")).collect();
    let problem = match nearest(key, names) {
        Some(meant) => format!("no parameter; is '{meant}' meant?"),
        None => format!(
            "no parameter; there are {}, and {}",
            names.join(", "),
            tables.join(", ")
        ),
    };
    Error::of_setting(key, problem)
}

fn wrong(file: &str, origin: Origin, key: &str, problem: impl Into<String>) -> Error {
    Error::Value {
        place: Place {
            file: file.to_owned(),
            origin,
        },
        key: key.to_owned(),
        problem: problem.into(),
    }
}

/// Reads `[parameters]`: `name = { default = "fast", values = ["slow", "fast"], aliases = ["NAME"] }`.
fn declared(file: &str, node: Node) -> Result<BTreeMap<String, Parameter>> {
    let Value::Table(table) = node.value else {
        return Err(wrong(file, node.origin, "parameters", "not a table"));
    };
    let parameters = table.into_iter().map(|(name, node)| {
        let key = format!("parameters.{name}");
        let origin = node.origin;
        let parameter = parameter(node).map_err(|problem| wrong(file, origin, &key, problem))?;
        Ok((name, parameter))
    });
    parameters.collect()
}

fn parameter(node: Node) -> std::result::Result<Parameter, String> {
    let Value::Table(mut table) = node.value else {
        return Err("not a table with 'default' and 'values'".to_owned());
    };
    let default = table.remove("default").ok_or("it has no 'default'")?.value;
    let list = |node: Option<Node>| match node.map(|node| node.value) {
        None => Ok(None),
        Some(Value::List(nodes)) => Ok(Some(
            nodes.into_iter().map(|node| node.value).collect::<Vec<_>>(),
        )),
        Some(other) => Err(format!("{other} is not a list")),
    };
    let choices = match (list(table.remove("values"))?, &default) {
        (Some(choices), _) => choices,
        (None, Value::Boolean(_)) => vec![Value::Boolean(false), Value::Boolean(true)],
        (None, _) => return Err("it has no 'values'".to_owned()),
    };
    if !choices.contains(&default) {
        return Err(format!("its default {default} is not one of its values"));
    }
    let aliases = list(table.remove("aliases"))?.unwrap_or_default();
    match table.first_key_value() {
        Some((key, _)) => Err(format!(
            "'{key}' is unknown; known are default, values, aliases"
        )),
        None => Ok(Parameter {
            value: default,
            choices,
            aliases: aliases.iter().map(plain).collect(),
        }),
    }
}

/// What holds if parameters have some values.
struct Change {
    origin: Origin,
    conditions: Table,
    over: Table,
}

impl Change {
    fn applies(&self, file: &str, values: &Values) -> Result<bool> {
        let mut applies = true;
        for (name, node) in &self.conditions {
            let Some(value) = values.get(name) else {
                let key = format!("when.parameters.{name}");
                return Err(wrong(file, node.origin, &key, "no such parameter"));
            };
            applies &= *value == node.value;
        }
        Ok(applies)
    }
}

fn changes(file: &str, node: Node) -> Result<Vec<Change>> {
    let Value::List(nodes) = node.value else {
        return Err(wrong(file, node.origin, "when", "not a list of tables"));
    };
    let changes = nodes.into_iter().map(|node| {
        let origin = node.origin;
        let Value::Table(mut over) = node.value else {
            return Err(wrong(file, origin, "when", "not a table"));
        };
        match over.remove("parameters").map(|node| node.value) {
            Some(Value::Table(conditions)) => Ok(Change {
                origin,
                conditions,
                over,
            }),
            _ => {
                let problem = "not a table of parameters and their values";
                Err(wrong(file, origin, "when.parameters", problem))
            }
        }
    });
    let changes: Vec<_> = changes.collect::<Result<_>>()?;
    // Whatever holds for no parameter at all belongs into the tables themselves.
    match changes.iter().find(|change| change.conditions.is_empty()) {
        Some(change) => Err(wrong(
            file,
            change.origin,
            "when.parameters",
            "no parameter is named",
        )),
        None => Ok(changes),
    }
}
