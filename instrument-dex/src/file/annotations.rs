//! Copies the annotations of classes and their members.

use std::collections::HashMap;

use super::{Cursor, Kind, Order, Output, copy_annotation};
use crate::error::Result;

/// Items that were written, by their old offsets.
type Offsets = HashMap<u32, u32>;

/// Offsets of items without duplicates, in the order in which they were found.
#[derive(Debug, Default)]
struct Found {
    order: Vec<u32>,
    known: HashMap<u32, ()>,
}

impl Found {
    fn add(&mut self, offset: u32) {
        if offset != 0 && self.known.insert(offset, ()).is_none() {
            self.order.push(offset);
        }
    }
}

/// What an annotations_directory_item has.
struct Directory<'d> {
    class: u32,
    /// For fields, methods and parameters: the number of entries, and where they are.
    parts: [(u32, Cursor<'d>); 3],
}

/// The part of a directory whose entries lead to lists of sets.
const PARAMETERS: usize = 2;

/// The directories that were written, by their old offsets.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    new: Offsets,
    /// The directory that was added, or 0.
    pub(crate) added: u32,
}

/// Methods of a class that is added, and an annotation that all of them have, by their new indices.
#[derive(Debug)]
pub(crate) struct Annotated {
    /// The annotation's type. It has no elements.
    pub(crate) annotation: u32,
    /// The methods, ascending.
    pub(crate) methods: Vec<u16>,
}

impl Annotations {
    /// Writes the directories at these offsets, and one for methods that are added, with all that they refer to.
    pub(crate) fn write(
        data: &[u8],
        offsets: impl Iterator<Item = u32>,
        order: &Order,
        annotated: Option<&Annotated>,
        out: &mut Output,
    ) -> Result<Self> {
        let (mut directories, mut lists) = (Found::default(), Found::default());
        let (mut sets, mut items) = (Found::default(), Found::default());
        offsets.for_each(|offset| directories.add(offset));
        for offset in &directories.order {
            let directory = Directory::read(data, *offset)?;
            sets.add(directory.class);
            for (part, (count, mut entries)) in directory.parts.into_iter().enumerate() {
                for _ in 0..count {
                    let _member = entries.u32()?;
                    match part {
                        PARAMETERS => lists.add(entries.u32()?),
                        _ => sets.add(entries.u32()?),
                    }
                }
            }
        }
        for offset in &lists.order {
            let mut list = Cursor::new(data, *offset, "annotation_set_ref_list");
            for _ in 0..list.u32()? {
                sets.add(list.u32()?);
            }
        }
        for offset in &sets.order {
            let mut set = Cursor::new(data, *offset, "annotation_set_item");
            for _ in 0..set.u32()? {
                items.add(set.u32()?);
            }
        }
        let (new_items, added) = write_items(data, &items, order, annotated, out)?;
        let kind = Kind::AnnotationSet;
        let (new_sets, added) = write_lists(data, &sets, kind, &new_items, added, out)?;
        let kind = Kind::AnnotationSetRefList;
        let (new_lists, _) = write_lists(data, &lists, kind, &new_sets, None, out)?;
        out.align();
        let start = out.at()?;
        let mut new = Offsets::new();
        for offset in &directories.order {
            new.insert(*offset, out.at()?);
            let directory = Directory::read(data, *offset)?;
            out.u32(get(&new_sets, directory.class));
            for (count, _) in &directory.parts {
                out.u32(*count);
            }
            for (part, (count, mut entries)) in directory.parts.into_iter().enumerate() {
                let members = match part {
                    0 => &order.fields,
                    _ => &order.methods,
                };
                let targets = match part {
                    PARAMETERS => &new_lists,
                    _ => &new_sets,
                };
                for _ in 0..count {
                    let at = entries.at();
                    out.u32(members.get(entries.u32()?, at)?);
                    out.u32(get(targets, entries.u32()?));
                }
            }
        }
        let mut directory = 0;
        if let (Some(annotated), Some(set)) = (annotated, added) {
            directory = out.at()?;
            let count = u32::try_from(annotated.methods.len()).unwrap_or(u32::MAX);
            // Nothing for the class and its fields, and nothing for parameters.
            for number in [0, 0, count, 0] {
                out.u32(number);
            }
            for method in &annotated.methods {
                out.u32((*method).into());
                out.u32(set);
            }
        }
        let count = new.len().saturating_add(usize::from(directory != 0));
        out.section(Kind::AnnotationsDirectory, count, start);
        Ok(Self {
            new,
            added: directory,
        })
    }

    /// Returns the new offset of a directory; 0 for 0.
    pub(crate) fn get(&self, old: u32) -> u32 {
        get(&self.new, old)
    }
}

fn get(offsets: &Offsets, old: u32) -> u32 {
    offsets.get(&old).copied().unwrap_or(0)
}

/// Writes annotations. Also returns the offset of the one that is added.
fn write_items(
    data: &[u8],
    items: &Found,
    order: &Order,
    annotated: Option<&Annotated>,
    out: &mut Output,
) -> Result<(Offsets, Option<u32>)> {
    /// The visibility of annotations for the VM only.
    const BUILD: u8 = 0;
    let start = out.at()?;
    let mut new = Offsets::new();
    for offset in &items.order {
        new.insert(*offset, out.at()?);
        let mut item = Cursor::new(data, *offset, "annotation_item");
        // The visibility.
        out.u8(item.u8()?);
        copy_annotation(&mut item, order, out, 0)?;
    }
    let mut added = None;
    if let Some(annotated) = annotated {
        added = Some(out.at()?);
        out.u8(BUILD);
        out.uleb(annotated.annotation);
        out.uleb(0);
    }
    let count = new.len().saturating_add(usize::from(added.is_some()));
    out.section(Kind::Annotation, count, start);
    Ok((new, added))
}

/// Writes lists of offsets, and one with the offset that is added. Also returns that one's offset.
fn write_lists(
    data: &[u8],
    lists: &Found,
    kind: Kind,
    targets: &Offsets,
    added: Option<u32>,
    out: &mut Output,
) -> Result<(Offsets, Option<u32>)> {
    out.align();
    let start = out.at()?;
    let mut new = Offsets::new();
    for offset in &lists.order {
        new.insert(*offset, out.at()?);
        let mut list = Cursor::new(data, *offset, "list of annotations");
        let count = list.u32()?;
        out.u32(count);
        for _ in 0..count {
            out.u32(get(targets, list.u32()?));
        }
    }
    let mut list = None;
    if let Some(added) = added {
        list = Some(out.at()?);
        out.u32(1);
        out.u32(added);
    }
    let count = new.len().saturating_add(usize::from(list.is_some()));
    out.section(kind, count, start);
    Ok((new, list))
}

impl<'d> Directory<'d> {
    fn read(data: &'d [u8], offset: u32) -> Result<Self> {
        let mut head = Cursor::new(data, offset, "annotations_directory_item");
        let class = head.u32()?;
        let counts = [head.u32()?, head.u32()?, head.u32()?];
        let mut parts = [(0, head); 3];
        for (part, count) in parts.iter_mut().zip(counts) {
            *part = (count, head);
            // Two numbers of four bytes for each entry.
            head.bytes((count as usize).saturating_mul(8))?;
        }
        Ok(Self { class, parts })
    }
}
