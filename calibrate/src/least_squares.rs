//! Which non-negative numbers solve more equations than there are unknowns, as well as possible?
//!
//! Block principal pivoting on the normal equations (Portugal, Júdice and Vicente, *A comparison of block pivoting and interior-point algorithms
//! for linear least squares problems with nonnegative variables*, Mathematics of Computation 63, 1994). The matrix is the same for each replicate of
//! a bootstrap, some 200 unknowns wide; a library for it would bring a general one for matrices.

/// The sum of squares of such equations, as a matrix and, for each solution, a vector.
#[derive(Debug, Clone)]
pub(crate) struct NormalEquations {
    /// The equations: for each the unknowns with their coefficients, multiplied by its weight.
    rows: Vec<Vec<(usize, f64)>>,
    weights: Vec<f64>,
    /// The matrix, by rows, with a diagonal of ones.
    matrix: Vec<Vec<f64>>,
    /// What each unknown was divided by.
    scale: Vec<f64>,
}

/// What is added to the diagonal: unknowns that the equations do not tell apart share their sum.
const RIDGE: f64 = 1e-9;
/// Solutions that are as small as this are zero.
const TOLERANCE: f64 = 1e-10;

impl NormalEquations {
    /// Makes the normal equations of equations with weights.
    pub(crate) fn new(unknowns: usize, equations: &[Vec<(usize, f64)>], weights: &[f64]) -> Self {
        let weighted = equations.iter().zip(weights);
        let mut rows: Vec<Vec<(usize, f64)>> = weighted
            .map(|(row, weight)| {
                row.iter()
                    .map(|(at, value)| (*at, value * weight))
                    .collect()
            })
            .collect();
        let mut scale = vec![0.0; unknowns];
        for (at, value) in rows.iter().flatten() {
            if let Some(sum) = scale.get_mut(*at) {
                *sum += value * value;
            }
        }
        for sum in &mut scale {
            *sum = if *sum > 0.0 { sum.sqrt() } else { 1.0 };
        }
        let mut matrix = vec![vec![0.0; unknowns]; unknowns];
        for row in &mut rows {
            for (at, value) in row.iter_mut() {
                *value /= scale.get(*at).copied().unwrap_or(1.0);
            }
            for (at, value) in row.iter() {
                for (other, factor) in row.iter() {
                    if let Some(cell) = matrix.get_mut(*at).and_then(|row| row.get_mut(*other)) {
                        *cell += value * factor;
                    }
                }
            }
        }
        for (at, row) in matrix.iter_mut().enumerate() {
            if let Some(cell) = row.get_mut(at) {
                *cell += RIDGE;
            }
        }
        Self {
            rows,
            weights: weights.to_vec(),
            matrix,
            scale,
        }
    }

    /// Returns the unknowns for the equations' right sides. `near`: the solution for similar ones, from which it is found sooner.
    pub(crate) fn solve(&self, right: &[f64], near: Option<&[f64]>) -> Vec<f64> {
        let mut vector = vec![0.0; self.scale.len()];
        for ((row, weight), right) in self.rows.iter().zip(&self.weights).zip(right) {
            for (at, value) in row {
                if let Some(sum) = vector.get_mut(*at) {
                    *sum += value * weight * right;
                }
            }
        }
        let is_free = match near {
            Some(near) => near.iter().map(|value| *value > 0.0).collect(),
            None => vec![true; vector.len()],
        };
        let solution = self.pivot(&vector, is_free);
        let scaled = solution.iter().zip(&self.scale);
        scaled
            .map(|(value, scale)| (value / scale).max(0.0))
            .collect()
    }

    /// Exchanges unknowns between those that are zero and those that are not, until no exchange makes the sum smaller.
    fn pivot(&self, vector: &[f64], mut is_free: Vec<bool>) -> Vec<f64> {
        let unknowns = vector.len();
        let (mut fewest, mut patience) = (usize::MAX, 3_u8);
        let mut solution = vec![0.0; unknowns];
        for _ in 0..unknowns.saturating_mul(3).saturating_add(10) {
            solution = self.solve_free(vector, &is_free);
            let wrong: Vec<usize> = (0..unknowns)
                .filter(|at| {
                    let value = solution.get(*at).copied().unwrap_or(0.0);
                    match is_free.get(*at) {
                        Some(true) => value < -TOLERANCE,
                        _ => self.gradient(*at, &solution, vector) < -TOLERANCE,
                    }
                })
                .collect();
            let Some(last) = wrong.last() else {
                break;
            };
            let exchanged: &[usize] = if wrong.len() < fewest {
                (fewest, patience) = (wrong.len(), 3);
                &wrong
            } else if patience > 0 {
                patience = patience.saturating_sub(1);
                &wrong
            } else {
                // One at a time always ends.
                std::slice::from_ref(last)
            };
            for at in exchanged {
                if let Some(free) = is_free.get_mut(*at) {
                    *free = !*free;
                }
            }
        }
        solution
    }

    fn gradient(&self, at: usize, solution: &[f64], vector: &[f64]) -> f64 {
        let row = self.matrix.get(at).map_or(&[][..], Vec::as_slice);
        let product: f64 = row.iter().zip(solution).map(|(a, b)| a * b).sum();
        product - vector.get(at).copied().unwrap_or(0.0)
    }

    /// Solves the equations with all unknowns that are not free at zero, by Cholesky's decomposition.
    fn solve_free(&self, vector: &[f64], is_free: &[bool]) -> Vec<f64> {
        let free: Vec<usize> = is_free
            .iter()
            .enumerate()
            .filter_map(|(at, free)| free.then_some(at))
            .collect();
        let cell = |a: usize, b: usize| {
            let row = self.matrix.get(a).map_or(&[][..], Vec::as_slice);
            row.get(b).copied().unwrap_or(0.0)
        };
        // The rows of the lower triangle.
        let mut lower: Vec<Vec<f64>> = Vec::with_capacity(free.len());
        for (i, at) in free.iter().enumerate() {
            let mut row: Vec<f64> = Vec::with_capacity(i.saturating_add(1));
            for (other, above) in free.iter().zip(&lower) {
                let product: f64 = row.iter().zip(above).map(|(a, b)| a * b).sum();
                let pivot = above.last().copied().unwrap_or(1.0);
                row.push((cell(*at, *other) - product) / pivot);
            }
            let squares: f64 = row.iter().map(|value| value * value).sum();
            row.push((cell(*at, *at) - squares).max(RIDGE * 1e-3).sqrt());
            lower.push(row);
        }
        // Forwards: the lower triangle's solution.
        let mut middle: Vec<f64> = Vec::with_capacity(free.len());
        for (at, row) in free.iter().zip(&lower) {
            let product: f64 = row.iter().zip(&middle).map(|(a, b)| a * b).sum();
            let pivot = row.last().copied().unwrap_or(1.0);
            middle.push((vector.get(*at).copied().unwrap_or(0.0) - product) / pivot);
        }
        // Backwards, with the upper one, whose columns are the rows.
        let mut solution = vec![0.0; vector.len()];
        for (row, at) in lower.iter().zip(&free).rev() {
            let pivot = row.last().copied().unwrap_or(1.0);
            let value = middle.pop().unwrap_or(0.0) / pivot;
            for (left, factor) in middle.iter_mut().zip(row) {
                *left -= factor * value;
            }
            if let Some(to) = solution.get_mut(*at) {
                *to = value;
            }
        }
        solution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn equations_that_agree_are_solved() {
        let rows = [
            vec![(0, 1.0)],
            vec![(0, 1.0), (1, 2.0)],
            vec![(1, 1.0), (2, 1.0)],
        ];
        let equations = NormalEquations::new(3, &rows, &[1.0, 0.5, 2.0]);
        let solution = equations.solve(&[1.0, 7.0, 8.0], None);
        assert!(close(&solution, &[1.0, 3.0, 5.0]), "{solution:?}");
    }

    #[test]
    fn an_unknown_that_would_be_negative_is_zero_and_the_others_fit_best() {
        // x = 1, x + y = 0: with y at 0 the best x is 0.5.
        let rows = [vec![(0, 1.0)], vec![(0, 1.0), (1, 1.0)]];
        let solution = NormalEquations::new(2, &rows, &[1.0, 1.0]).solve(&[1.0, 0.0], None);
        assert!(close(&solution, &[0.5, 0.0]), "{solution:?}");
    }

    #[test]
    fn unknowns_that_always_occur_together_share_their_sum() {
        let rows = [vec![(0, 1.0), (1, 1.0)]];
        let solution = NormalEquations::new(2, &rows, &[1.0]).solve(&[6.0], None);
        assert!(close(&solution, &[3.0, 3.0]), "{solution:?}");
    }

    /// The solution is the least one if the gradient is zero at unknowns above zero, and not negative at the others.
    #[test]
    fn random_equations_have_the_least_squares() {
        let mut random = Rng::with_seed(7);
        for _ in 0..50 {
            let unknowns = random.usize(1..12);
            let mut row = || {
                (0..unknowns)
                    .map(|at| (at, random.f64() - 0.3))
                    .collect::<Vec<_>>()
            };
            let rows: Vec<_> = (0..unknowns + 5).map(|_| row()).collect();
            let right: Vec<f64> = rows.iter().map(|_| random.f64() - 0.4).collect();
            let weights = vec![1.0; rows.len()];
            let equations = NormalEquations::new(unknowns, &rows, &weights);
            let near: Vec<f64> = (0..unknowns).map(|_| random.f64() - 0.5).collect();
            let solution = equations.solve(&right, Some(&near));
            assert!(close(&solution, &equations.solve(&right, None)));
            for at in 0..unknowns {
                let gradient: f64 = rows
                    .iter()
                    .zip(&right)
                    .map(|(row, right)| {
                        let left: f64 = row.iter().map(|(at, value)| value * solution[*at]).sum();
                        row[at].1 * (left - right)
                    })
                    .sum();
                let is_least = match solution[at] > 0.0 {
                    true => gradient.abs() < 1e-6,
                    false => gradient > -1e-6,
                };
                assert!(is_least, "{solution:?} {gradient}");
            }
        }
    }
}
