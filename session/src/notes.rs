//! Limits the number of notes of one kind in a recording.

/// Maximum number of notes of one kind. The last one says that there were more.
const MAX_NOTES: usize = 32;

/// Notes of one kind.
#[derive(Debug, Default)]
pub struct Notes {
    added: usize,
    pending: Vec<String>,
}

impl Notes {
    /// Adds a note, unless there are too many. In that case `further` is added once.
    pub fn add(&mut self, note: String, further: &str) {
        self.added = self.added.saturating_add(1);
        if self.added < MAX_NOTES {
            self.pending.push(note);
        } else if self.added == MAX_NOTES {
            self.pending.push(further.to_owned());
        }
    }

    /// Returns the notes that were added since the last call.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_note_says_that_there_were_more() {
        let mut notes = Notes::default();
        for number in 0..MAX_NOTES - 1 {
            notes.add(format!("{number}"), "more");
        }
        let taken = notes.take();
        assert_eq!(taken.len(), MAX_NOTES - 1);
        assert!(!taken.contains(&"more".to_owned()));
        for number in 0..3 {
            notes.add(format!("{number}"), "more");
        }
        assert_eq!(notes.take(), ["more"]);
    }
}
