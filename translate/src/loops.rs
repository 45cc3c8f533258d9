//! The innermost loops of a function.
//!
//! What is counted in a loop can be kept in registers of the host until the loop is left. That is right for any set of blocks; it is worth it
//! for loops.

/// A loop, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoopId(pub usize);

/// The innermost loop of each node of a graph. `successors` are the ways that loops may go by.
///
/// A loop is what leads back to a node that a search in depth has come through (a natural loop, if the graph is reducible). It is innermost if
/// no other loop begins in it.
pub fn innermost(successors: &[Vec<usize>]) -> Vec<Option<LoopId>> {
    let search = Search::of(successors);
    let count = successors.len();
    let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, successors) in successors.iter().enumerate() {
        for to in successors {
            if let Some(known) = predecessors.get_mut(*to) {
                known.push(from);
            }
        }
    }
    let mut loops = vec![None; count];
    let mut next = 0;
    for (head, backs) in search.backs.iter().enumerate() {
        let Some(body) = search.body(head, backs, &predecessors) else {
            continue;
        };
        let free = |node: &&usize| loops.get(**node).is_some_and(Option::is_none);
        let body: Vec<usize> = body.iter().filter(free).copied().collect();
        for node in body {
            if let Some(known) = loops.get_mut(node) {
                *known = Some(LoopId(next));
            }
        }
        next = next.saturating_add(1);
    }
    loops
}

fn set(flags: &mut [bool], node: usize, value: bool) {
    if let Some(flag) = flags.get_mut(node) {
        *flag = value;
    }
}

/// A search in depth.
struct Search {
    /// By node: its place in the order in which nodes were found, and the place behind the last one that was found from it.
    places: Vec<(usize, usize)>,
    /// By node: from where edges lead back to it.
    backs: Vec<Vec<usize>>,
}

impl Search {
    fn of(successors: &[Vec<usize>]) -> Self {
        let count = successors.len();
        let mut search = Self {
            places: vec![(usize::MAX, 0); count],
            backs: vec![Vec::new(); count],
        };
        let mut found: usize = 0;
        let mut is_open = vec![false; count];
        for root in 0..count {
            // Nodes that are open, each with the number of successors that were followed.
            let mut path: Vec<(usize, usize)> = vec![(root, 0)];
            while let Some((node, followed)) = path.last_mut() {
                let node = *node;
                let Some(place) = search.places.get_mut(node) else {
                    break;
                };
                if *followed == 0 {
                    if place.0 != usize::MAX {
                        path.pop();
                        continue;
                    }
                    *place = (found, found);
                    found = found.saturating_add(1);
                    set(&mut is_open, node, true);
                }
                let next = successors.get(node).and_then(|all| all.get(*followed));
                *followed = followed.saturating_add(1);
                match next.copied() {
                    Some(next) if is_open.get(next) == Some(&true) => {
                        if let Some(backs) = search.backs.get_mut(next) {
                            backs.push(node);
                        }
                    }
                    Some(next) => path.push((next, 0)),
                    None => {
                        place.1 = found;
                        set(&mut is_open, node, false);
                        path.pop();
                    }
                }
            }
        }
        search
    }

    /// The nodes of the loop that begins with a node. None: there is none, or another one begins in it.
    fn body(
        &self,
        head: usize,
        backs: &[usize],
        predecessors: &[Vec<usize>],
    ) -> Option<Vec<usize>> {
        let (first, end) = *self.places.get(head)?;
        if backs.is_empty() {
            return None;
        }
        let mut is_in = vec![false; predecessors.len()];
        let mut body = vec![head];
        *is_in.get_mut(head)? = true;
        let mut work = backs.to_vec();
        while let Some(node) = work.pop() {
            let known = is_in.get_mut(node)?;
            let (place, _) = *self.places.get(node)?;
            if *known || !(first..end).contains(&place) {
                continue;
            }
            if self.backs.get(node).is_some_and(|backs| !backs.is_empty()) {
                return None;
            }
            *known = true;
            body.push(node);
            work.extend(predecessors.get(node)?);
        }
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_leads_to_itself_is_a_loop() {
        let loops = innermost(&[vec![1], vec![1, 2], vec![]]);
        assert_eq!(loops, [None, Some(LoopId(0)), None]);
    }

    #[test]
    fn what_surrounds_a_loop_is_not_innermost() {
        // 1 to 4 with 2 and 3 in it.
        let loops = innermost(&[vec![1], vec![2], vec![3], vec![2, 4], vec![1, 5], vec![]]);
        let inner = Some(LoopId(0));
        assert_eq!(loops, [None, None, inner, inner, None, None]);
    }

    #[test]
    fn both_sides_of_a_branch_are_in_the_loop() {
        let loops = innermost(&[vec![1, 2], vec![3], vec![3], vec![0, 4], vec![]]);
        assert_eq!(loops[..4], [Some(LoopId(0)); 4]);
        assert_eq!(loops[4], None);
    }

    #[test]
    fn a_loop_with_two_entries_is_searched_to_its_end() {
        let loops = innermost(&[vec![1, 2], vec![2], vec![1]]);
        assert_eq!(loops.iter().flatten().count(), 2);
    }

    #[test]
    fn two_loops_are_two() {
        let loops = innermost(&[vec![0, 1], vec![1]]);
        assert_ne!(loops[0], loops[1]);
        assert!(loops.iter().all(Option::is_some));
    }
}
