//! How many sentences of one kind does a recording carry?

/// Of one kind; the last says that there were more.
const MOST: usize = 32;

/// Sentences of one kind that are to be said.
#[derive(Debug, Default)]
pub struct Notes {
    added: usize,
    unsaid: Vec<String>,
}

impl Notes {
    /// One more, if there is room; `further` says that there was none.
    pub fn add(&mut self, note: String, further: &str) {
        self.added = self.added.saturating_add(1);
        if self.added < MOST {
            self.unsaid.push(note);
        } else if self.added == MOST {
            self.unsaid.push(further.to_owned());
        }
    }

    /// What has not been said yet.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unsaid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sentence_says_that_there_were_more() {
        let mut notes = Notes::default();
        for number in 0..MOST - 1 {
            notes.add(format!("{number}"), "more");
        }
        let said = notes.take();
        assert_eq!(said.len(), MOST - 1);
        assert!(!said.contains(&"more".to_owned()));
        for number in 0..3 {
            notes.add(format!("{number}"), "more");
        }
        assert_eq!(notes.take(), ["more"]);
    }
}
