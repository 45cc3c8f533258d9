//! Formats guides in Markdown for a terminal.
//!
//! It supports the Markdown that the guides use: headings, paragraphs, lists, tables, indented code, links, bold and inline code.

/// Returns a guide's title.
pub fn title(markdown: &str) -> &str {
    let mut lines = markdown.lines();
    let title = lines.find_map(|line| line.strip_prefix("# "));
    title.unwrap_or_default()
}

/// Returns a guide in lines of at most `width`. Longer code and words are not split.
pub fn rendered(markdown: &str, width: usize) -> String {
    let mut page = Page {
        width,
        text: String::new(),
    };
    let mut block = Block::None;
    for line in markdown.lines() {
        block = page.line(block, line);
    }
    page.end(block);
    page.text
}

/// A block of consecutive lines.
enum Block {
    None,
    Comment,
    Paragraph(String),
    /// The item's text.
    Item(String),
    /// Rows of cells. The separator line is an empty row.
    Table(Vec<Vec<String>>),
}

struct Page {
    width: usize,
    text: String,
}

impl Page {
    /// Adds a line of Markdown. Returns the block that is open after it.
    fn line(&mut self, block: Block, line: &str) -> Block {
        let trimmed = line.trim();
        if matches!(block, Block::Comment) || trimmed.starts_with("<!--") {
            return match trimmed.ends_with("-->") {
                true => Block::None,
                false => Block::Comment,
            };
        }
        if trimmed.is_empty() {
            self.end(block);
            self.gap();
            return Block::None;
        }
        if let Some(row) = trimmed.strip_prefix('|') {
            let mut rows = match block {
                Block::Table(rows) => rows,
                other => {
                    self.end(other);
                    Vec::new()
                }
            };
            rows.extend(cells(row));
            return Block::Table(rows);
        }
        if let Some(item) = line.strip_prefix("- ") {
            self.end(block);
            return Block::Item(item.trim().to_owned());
        }
        match block {
            Block::Paragraph(text) => return Block::Paragraph(format!("{text} {trimmed}")),
            Block::Item(text) => return Block::Item(format!("{text} {trimmed}")),
            other => self.end(other),
        }
        if line.starts_with("    ") {
            self.push(line);
            return Block::None;
        }
        let heading = trimmed.trim_start_matches('#');
        if heading.starts_with(' ') && heading.len() < trimmed.len() {
            self.heading(heading.trim(), trimmed.starts_with("# "));
            return Block::None;
        }
        if trimmed.starts_with("![") {
            return Block::None;
        }
        Block::Paragraph(trimmed.to_owned())
    }

    fn end(&mut self, block: Block) {
        match block {
            Block::None | Block::Comment => {}
            Block::Paragraph(text) => self.wrapped(&inline(&text), Indent::both("")),
            Block::Item(text) => self.wrapped(
                &inline(&text),
                Indent {
                    first: "- ",
                    other: "  ",
                },
            ),
            Block::Table(rows) => self.table(&rows),
        }
    }

    fn heading(&mut self, text: &str, is_title: bool) {
        let text = inline(text);
        let rule = if is_title { "=" } else { "-" };
        self.gap();
        self.push(&text);
        self.push(&rule.repeat(text.chars().count()));
    }

    /// Writes a table in columns if there is space, else each row as a list of its cells.
    fn table(&mut self, rows: &[Vec<String>]) {
        const GAP: usize = 2;
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let gaps = columns.saturating_sub(1).saturating_mul(GAP);
        let all = widths.iter().sum::<usize>().saturating_add(gaps);
        for row in rows
            .iter()
            .filter(|row| row.iter().any(|cell| !cell.is_empty()))
        {
            if all <= self.width {
                let cells = row.iter().zip(&widths);
                let cells = cells.map(|(cell, &width)| format!("{cell:width$}"));
                let line = cells.collect::<Vec<_>>().join("  ");
                self.push(line.trim_end());
                continue;
            }
            let mut cells = row.iter();
            let first = cells.next().map_or("", String::as_str);
            self.wrapped(first, Indent::both("  "));
            for cell in cells.filter(|cell| !cell.is_empty()) {
                self.wrapped(cell, Indent::both("      "));
            }
        }
    }

    /// Writes text in indented lines.
    fn wrapped(&mut self, text: &str, indent: Indent) {
        let mut line = indent.first.to_owned();
        let mut is_empty = true;
        for word in text.split_whitespace() {
            let length = line.chars().count().saturating_add(word.chars().count());
            if !is_empty && length >= self.width {
                self.push(&line);
                line = indent.other.to_owned();
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.push(&line);
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds an empty line, unless there is one.
    fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }
}

/// What stands before the lines of a text.
#[derive(Debug, Clone, Copy)]
struct Indent {
    first: &'static str,
    other: &'static str,
}

impl Indent {
    const fn both(text: &'static str) -> Self {
        Self {
            first: text,
            other: text,
        }
    }
}

/// Returns the cells of a table's line after its first bar. Empty for the separator line, and for a head without names.
fn cells(row: &str) -> Option<Vec<String>> {
    let row = row.strip_suffix('|').unwrap_or(row);
    if row
        .chars()
        .all(|character| matches!(character, '-' | '|' | ' ' | ':'))
    {
        return None;
    }
    let row = row.replace("\\|", "\0");
    let cells = row.split('|');
    Some(
        cells
            .map(|cell| inline(cell.trim()).replace('\0', "|"))
            .collect(),
    )
}

/// Formats links as their text and destination, and code in quotes, and removes bold marks.
fn inline(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '*', '`']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        rest = if let Some(code) = from.strip_prefix('`') {
            match code.split_once('`') {
                Some((code, after)) => {
                    plain.push_str(&format!("'{code}'"));
                    after
                }
                None => code,
            }
        } else if let Some((said, target, after)) = link(from) {
            plain.push_str(&inline(said));
            plain.push_str(&destination(target));
            after
        } else if let Some(after) = from.strip_prefix("**") {
            after
        } else {
            let mut characters = from.chars();
            plain.extend(characters.next());
            characters.as_str()
        };
    }
    plain.push_str(rest);
    plain
}

/// Splits a link at the start of a text into its text, its destination, and the rest.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (said, rest) = text.strip_prefix('[')?.split_once("](")?;
    if said.contains('[') {
        return None;
    }
    let (target, after) = rest.split_once(')')?;
    Some((said, target, after))
}

/// Formats a destination: a command or a place. Empty for a link within the same guide.
fn destination(target: &str) -> String {
    if target.starts_with("http") {
        return format!(" <{target}>");
    }
    let file = target.split('#').next().unwrap_or(target);
    let guide = file.strip_prefix("guide-");
    match guide.and_then(|guide| guide.strip_suffix(".md")) {
        Some(guide) => format!(" ('varid help {guide}')"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::help::guides::GUIDES;

    #[test]
    fn what_guides_use_of_markdown_is_plain() {
        let markdown = "\
<!-- Not shown:
this, too. -->
# Title with `code`

A paragraph of **bold** words, a [link](guide-events.md#x) to a
guide, [one](#here) to a place here, `a*b` and [one](https://x.org/y).

    $ code    stays as it is

## Below

- one item of a list that is
  longer than a line
- [another](../x.md)

| option | |
|---|---|
| `-e EVENT` | short |
| `-F HZ` | so long that it does not fit into the columns that there are |

![picture](x.png)
";
        assert_eq!(
            rendered(markdown, 40),
            "\
Title with 'code'
=================

A paragraph of bold words, a link
('varid help events') to a guide, one to
a place here, 'a*b' and one
<https://x.org/y>.

    $ code    stays as it is

Below
-----

- one item of a list that is longer than
  a line
- another

  option
  '-e EVENT'
      short
  '-F HZ'
      so long that it does not fit into
      the columns that there are

"
        );
        assert_eq!(title(markdown), "Title with `code`");
    }

    #[test]
    fn guides_are_lines_of_the_terminal_s_width_without_marks() {
        for (name, text) in GUIDES {
            let page = rendered(text, 80);
            for line in page.lines().filter(|line| !line.starts_with("    ")) {
                let words = line.split_whitespace().count();
                assert!(words < 3 || line.chars().count() <= 80, "{name}: {line}");
                assert!(
                    !line.contains("**") && !line.contains("]("),
                    "{name}: {line}"
                );
            }
            assert!(!title(text).is_empty(), "{name}");
            // Only marks and links may be lost.
            let words = |text: &str| text.matches("varid").count();
            assert!(words(&page) * 10 >= words(text) * 9, "{name}");
        }
    }
}
