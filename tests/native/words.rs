//! Counts words: a small Rust program with generics, closures, traits and inlining.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};

/// Something that can be counted.
trait Countable: Clone + Ord {
    fn weight(&self) -> usize;
}

impl Countable for String {
    fn weight(&self) -> usize {
        self.chars().filter(|letter| letter.is_alphabetic()).count()
    }
}

impl Countable for u64 {
    fn weight(&self) -> usize {
        self.count_ones() as usize
    }
}

struct Counts<K: Countable, const N: usize> {
    counts: BTreeMap<K, [usize; N]>,
}

impl<K: Countable, const N: usize> Counts<K, N> {
    fn add(&mut self, key: K) {
        let weight = key.weight();
        self.counts.entry(key).or_insert([0; N])[weight % N] += 1;
    }

    fn largest<F: Fn(&K) -> bool>(&self, wanted: F) -> Option<(&K, usize)> {
        self.counts
            .iter()
            .filter(|(key, _)| wanted(key))
            .map(|(key, counts)| (key, counts.iter().sum()))
            .max_by_key(|(_, sum)| *sum)
    }
}

impl<K: Countable + Display, const N: usize> Display for Counts<K, N> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, counts) in &self.counts {
            writeln!(out, "{key}: {counts:?}")?;
        }
        Ok(())
    }
}

fn main() {
    let text = std::env::args().collect::<Vec<_>>().join(" ") + " the quick brown fox and the lazy dog";
    let mut words = Counts::<String, 3> { counts: BTreeMap::new() };
    text.split_whitespace().map(str::to_lowercase).for_each(|word| words.add(word));
    let mut numbers = Counts::<u64, 5> { counts: BTreeMap::new() };
    (0..1000u64).for_each(|number| numbers.add(number * number % 97));
    let lengths: HashMap<usize, Vec<&str>> = text.split(' ').fold(HashMap::new(), |mut all, word| {
        all.entry(word.len()).or_default().push(word);
        all
    });
    println!("{words}{numbers}{:?}", words.largest(|word| word.len() > 2));
    println!("{:?} {}", numbers.largest(|number| number % 2 == 0), lengths.len());
}
