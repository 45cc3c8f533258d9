//! A session's calling context tree as XML. A public interface: docs/formats/contexts-xml.md, contexts.xsd.
//!
//! The document is written while the tree is walked. Elements are not indented, because trees may be thousands of methods deep.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use varid_recording::{ContextCount, ContextSite, Contexts, MethodId, NodeId, SiteTarget};

use super::{
    Content, ExportFormat, FormatMeasures, Input, Need,
    markup::escape,
    walk::{Walk, plain},
};
use crate::{
    context_children::Children,
    error::Result,
    measures::{Measure, named},
    tasks::{Task, TaskId},
    weights::ProfileCounter,
};

/// The version of the format.
const VERSION: u32 = 1;

/// This format.
pub static FORMAT: ExportFormat = ExportFormat {
    name: "xml",
    aliases: &[],
    about: "The tree of exact calling contexts in XML: XQuery, XSLT and programs",
    endings: &[".xml"],
    needs: &[Need::Contexts, Need::Lines],
    measures: FormatMeasures::Several,
    content: Content::Text,
    write: |input, out| write(input, out),
};

/// Writes the contexts of the request. Without contexts, the tree is empty.
fn write(input: &Input<'_>, out: &mut dyn Write) -> Result<()> {
    let measures = measures(input)?;
    let none = Contexts::default();
    let contexts = input.request.contexts.as_ref().unwrap_or(&none);
    let mut document = Document {
        walk: &input.walk,
        contexts,
        measures: &measures,
        out,
    };
    document.head()?;
    document.methods()?;
    document.processes()?;
    writeln!(document.out, "</contexts>")?;
    Ok(())
}

/// Returns the counters of contexts that the request names, or all.
fn measures(input: &Input<'_>) -> Result<Vec<Measure>> {
    let known: Vec<Measure> = input.profile.context_measures().collect();
    match &*input.request.measures {
        [] => Ok(known),
        names => named(&known, names),
    }
}

/// The document that is being written.
struct Document<'w, 'p> {
    walk: &'w Walk<'p>,
    contexts: &'w Contexts,
    measures: &'w [Measure],
    out: &'w mut dyn Write,
}

impl Document<'_, '_> {
    fn head(&mut self) -> io::Result<()> {
        let recording = &self.walk.profile.recording;
        let manifest = &recording.manifest;
        writeln!(self.out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
        write!(self.out, r#"<contexts version="{VERSION}""#)?;
        self.attribute("target", &manifest.target.value)?;
        self.attribute("start", &manifest.wall_start)?;
        writeln!(self.out, ">")?;
        for note in &recording.notes {
            writeln!(self.out, "<note>{}</note>", escape(&plain(note)))?;
        }
        for measure in self.measures {
            write!(self.out, "<measure")?;
            self.attribute("name", &measure.name)?;
            self.attribute("unit", &measure.unit)?;
            self.attribute("origin", measure.origin.name())?;
            writeln!(self.out, "/>")?;
        }
        Ok(())
    }

    fn attribute(&mut self, name: &str, value: &str) -> io::Result<()> {
        write!(self.out, r#" {name}="{}""#, escape(&plain(value)))
    }

    /// Writes the methods of selected processes, with their call sites.
    fn methods(&mut self) -> io::Result<()> {
        let contexts = self.contexts;
        let mut sites: BTreeMap<MethodId, Vec<&ContextSite>> = BTreeMap::new();
        for site in contexts.sites() {
            sites.entry(site.method).or_default().push(site);
        }
        for (id, method) in (0..).map(MethodId).zip(contexts.methods()) {
            let only = self.walk.profile.options.tasks.pid;
            if only.is_some_and(|only| only != method.pid) {
                continue;
            }
            self.method(id)?;
            let sites = sites.remove(&id).unwrap_or_default();
            if sites.is_empty() {
                writeln!(self.out, "/>")?;
                continue;
            }
            writeln!(self.out, ">")?;
            for site in sites {
                self.site(site)?;
            }
            writeln!(self.out, "</method>")?;
        }
        Ok(())
    }

    /// Writes the start of a method's tag.
    fn method(&mut self, id: MethodId) -> io::Result<()> {
        write!(self.out, r#"<method id="{}""#, id.index())?;
        let walk = self.walk;
        let frame = walk.profile.context_methods.get(id.index());
        let frame = frame.copied().flatten();
        let symbol = frame.and_then(|frame| walk.symbol_of(frame));
        let method = self.contexts.method(id);
        match symbol {
            Some(symbol) => {
                self.attribute("name", symbol.plain_name())?;
                if let Some(signature) = &symbol.signature {
                    self.attribute("signature", signature)?;
                }
                self.attribute("layer", symbol.layer.name())?;
                if let Some(image) = walk.image_of(symbol) {
                    self.attribute("image", &image.name)?;
                }
            }
            None => {
                let address = method.map_or(0, |method| method.address.get());
                write!(self.out, r#" name="{address:#x}""#)?;
            }
        }
        if let Some(length) = method.and_then(|method| method.code) {
            write!(self.out, r#" length="{}""#, length.get())?;
        }
        let line = frame.and_then(|frame| walk.frame(frame)?.line.as_ref());
        if let Some(line) = line {
            self.attribute("file", &line.file)?;
            write!(self.out, r#" line="{}""#, line.line)?;
        }
        Ok(())
    }

    fn site(&mut self, site: &ContextSite) -> io::Result<()> {
        let (offset, opcode) = (site.pc.get(), site.opcode);
        write!(self.out, r#"<site offset="{offset}" opcode="{opcode}""#)?;
        match &site.target {
            Some(SiteTarget::Name(name)) => self.attribute("target", name)?,
            Some(SiteTarget::Method(id)) => write!(self.out, r#" method="{}""#, id.index())?,
            None => {}
        }
        writeln!(self.out, "/>")
    }

    /// Writes the trees of all threads, by process.
    fn processes(&mut self) -> io::Result<()> {
        let profile = self.walk.profile;
        let task = |id: TaskId| profile.tasks.task(id);
        let mut roots: Vec<(&Task, TaskId, NodeId)> = (profile.context_roots.iter())
            .filter_map(|root| Some((task(root.task)?, root.task, root.node)))
            .collect();
        roots.sort_by_key(|(task, id, node)| (task.pid, task.tid, *id, *node));
        let parents = self.contexts.nodes().iter().map(|node| node.parent);
        let children = Children::new(parents);
        for process in roots.chunk_by(|(one, ..), (other, ..)| one.pid == other.pid) {
            let Some((first, ..)) = process.first() else {
                continue;
            };
            let pid = first.pid;
            write!(self.out, r#"<process pid="{}""#, pid.get())?;
            self.attribute("name", self.walk.process_name(first))?;
            let contexts = self.contexts;
            if let Some(found) = contexts.processes().iter().find(|found| found.pid == pid) {
                self.attribute("vm", &found.vm)?;
                if let Some(why) = &found.incomplete {
                    self.attribute("incomplete", why)?;
                }
            }
            writeln!(self.out, ">")?;
            for thread in process.chunk_by(|(_, one, _), (_, other, _)| one == other) {
                self.thread(thread, &children)?;
            }
            writeln!(self.out, "</process>")?;
        }
        Ok(())
    }

    fn thread(&mut self, roots: &[(&Task, TaskId, NodeId)], children: &Children) -> io::Result<()> {
        let Some((task, _, first)) = roots.first() else {
            return Ok(());
        };
        write!(self.out, "<thread")?;
        // A tree of all threads has no thread.
        if let Some(tid) = self.contexts.node(*first).and_then(|node| node.tid) {
            write!(self.out, r#" tid="{}""#, tid.get())?;
        }
        self.attribute("name", &task.name)?;
        writeln!(self.out, ">")?;
        for (.., root) in roots {
            self.tree(*root, children)?;
        }
        writeln!(self.out, "</thread>")
    }

    /// Writes a context with all that it has called.
    fn tree(&mut self, root: NodeId, children: &Children) -> io::Result<()> {
        let mut next = Some(root);
        while let Some(mut at) = next {
            self.enter(at)?;
            next = children.first(at);
            // Go up until there is a sibling.
            while next.is_none() {
                writeln!(self.out, "</context>")?;
                if at == root {
                    return Ok(());
                }
                next = children.next(at);
                let Some(parent) = self.contexts.node(at).and_then(|node| node.parent) else {
                    return Ok(());
                };
                at = parent;
            }
        }
        Ok(())
    }

    /// Writes the start of a context, and its values.
    fn enter(&mut self, id: NodeId) -> io::Result<()> {
        let contexts = self.contexts;
        let method = contexts.method_of(id).map_or(0, MethodId::index);
        write!(self.out, r#"<context method="{method}""#)?;
        let site = contexts.node(id).and_then(|node| node.site);
        if let Some(site) = site.and_then(|site| contexts.site(site)) {
            write!(self.out, r#" site="{}""#, site.pc.get())?;
        }
        writeln!(self.out, ">")?;
        for measure in self.measures {
            let ProfileCounter::Context(counter) = measure.counter else {
                continue;
            };
            let value = contexts.value(id, counter);
            if value == 0 {
                continue;
            }
            let name = escape(&plain(&measure.name));
            writeln!(self.out, r#"<value measure="{name}">{value}</value>"#)?;
            let placed = |count: &&ContextCount| count.counter == counter && count.place.is_some();
            let counts: Vec<_> = contexts.counts(id).iter().filter(placed).collect();
            for equal in counts.chunk_by(|one, other| one.value == other.value) {
                self.places(&name, equal)?;
            }
        }
        Ok(())
    }

    /// Writes places that have the same value.
    fn places(&mut self, measure: &str, equal: &[&ContextCount]) -> io::Result<()> {
        let (each, number) = (equal.first().map_or(0, |count| count.value), equal.len());
        write!(
            self.out,
            r#"<places measure="{measure}" each="{each}" number="{number}">"#
        )?;
        let places = equal.iter().filter_map(|count| count.place);
        for (index, place) in places.enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(self.out, "{space}{place}")?;
        }
        writeln!(self.out, "</places>")
    }
}
