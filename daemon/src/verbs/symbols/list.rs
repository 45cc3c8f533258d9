//! `varid symbols FILE...`: lists the functions in files.

use super::Errors;
use super::image::{Function, Image, InputFile};
use crate::output::{self, Align};
use serde::Serialize;
use varid_symbolizer::hex;

#[derive(Serialize)]
struct Document {
    images: Vec<Listed>,
}

/// An image and its functions.
#[derive(Serialize)]
struct Listed {
    /// `FILE`, or `FILE!ENTRY`.
    name: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    functions: Vec<Function>,
}

/// Lists all functions of all files.
pub fn run(files: &[InputFile], json: bool, errors: &mut Errors) -> anyhow::Result<()> {
    let mut document = Document { images: Vec::new() };
    let mut text = String::new();
    for file in files {
        file.visit(errors, |images, _| {
            for image in images {
                let listed = Listed::new(image);
                if json {
                    document.images.push(listed);
                } else {
                    listed.write(&mut text);
                }
            }
        });
    }
    if json {
        output::json(&document)
    } else {
        output::text(&text)
    }
}

impl Listed {
    fn new(image: &Image<'_>) -> Self {
        Self {
            name: image.name.clone(),
            kind: image.kind(),
            build_id: image.build_id().map(|id| hex(&id)),
            functions: image.functions(),
        }
    }

    fn write(&self, text: &mut String) {
        if !text.is_empty() {
            text.push('\n');
        }
        let build_id = self.build_id.as_deref().unwrap_or("none");
        text.push_str(&format!(
            "{}: {}, build-id {build_id}, {} functions\n",
            self.name,
            self.kind,
            self.functions.len()
        ));
        let rows: Vec<_> = self
            .functions
            .iter()
            .map(|function| {
                [
                    format!("{:#x}", function.address),
                    function.size.to_string(),
                    function.source(),
                    function.name.clone(),
                ]
            })
            .collect();
        let head = [
            ("ADDRESS", Align::Right),
            ("SIZE", Align::Right),
            ("SOURCE", Align::Left),
            ("FUNCTION", Align::Left),
        ];
        text.push_str(&output::table(head, &rows));
    }
}

impl Function {
    /// Formats the source as `Balls.java:17`, or the known part of it.
    fn source(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => String::new(),
        }
    }
}
