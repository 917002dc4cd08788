//! CMA-ES, a search for the minimum of a function of a few dozen numbers that gives neither slopes
//! nor the same value twice: N. Hansen, "The CMA Evolution Strategy: A Tutorial",
//! arXiv:1604.00772, with its default parameters.

/// A distribution of points that moves to where the function is low.
pub struct Cma {
    mean: Vec<f64>,
    /// Step size.
    sigma: f64,
    covariance: Vec<Vec<f64>>,
    /// Lower triangle of the covariance's Cholesky decomposition.
    factor: Vec<Vec<f64>>,
    path_of_covariance: Vec<f64>,
    path_of_sigma: Vec<f64>,
    generation: i32,
    parameters: Parameters,
    random: Random,
}

/// What follows from the numbers of dimensions and of points.
struct Parameters {
    population: usize,
    /// Of the better half, the best first; their sum is 1.
    weights: Vec<f64>,
    /// The number of points that count as much as these weights.
    effective: f64,
    rate_of_path: f64,
    rate_of_sigma: f64,
    rate_of_one: f64,
    rate_of_rank: f64,
    damping: f64,
    /// The expected length of a normally distributed vector.
    expected_length: f64,
}

/// One point of a generation.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its coordinates.
    pub point: Vec<f64>,
    /// The step from the mean, in units of sigma.
    step: Vec<f64>,
    /// The step before it was stretched along the covariance.
    normal: Vec<f64>,
}

impl Cma {
    /// Starts around `mean` with a standard deviation of 1 in each direction; `population` points a
    /// generation, at least 4. Equal seeds give equal searches.
    pub fn new(mean: Vec<f64>, population: usize, seed: u64) -> Self {
        let n = mean.len();
        let identity: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
            .collect();
        Self {
            mean,
            sigma: 1.0,
            covariance: identity.clone(),
            factor: identity,
            path_of_covariance: vec![0.0; n],
            path_of_sigma: vec![0.0; n],
            generation: 0,
            parameters: Parameters::new(n, population.max(4)),
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        }
    }

    /// The middle of the distribution: the best guess at the end.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The step size, which falls as the search closes in.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The points of the next generation.
    pub fn ask(&mut self) -> Vec<Candidate> {
        let n = self.mean.len();
        (0..self.parameters.population)
            .map(|_| {
                let normal: Vec<f64> = (0..n).map(|_| self.random.normal()).collect();
                let step: Vec<f64> = self.factor.iter().map(|row| dot(row, &normal)).collect();
                let point = add(&self.mean, &step, self.sigma);
                Candidate {
                    point,
                    step,
                    normal,
                }
            })
            .collect()
    }

    /// Moves to where the candidates of [`Self::ask`] were good: lower values are better.
    pub fn tell(&mut self, mut candidates: Vec<(f64, Candidate)>) {
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.generation += 1;
        let n = self.mean.len();
        let p = &self.parameters;
        let chosen: Vec<(f64, &Candidate)> = p
            .weights
            .iter()
            .copied()
            .zip(candidates.iter().map(|(_, candidate)| candidate))
            .collect();
        let mut step = vec![0.0; n];
        let mut normal = vec![0.0; n];
        for (weight, candidate) in &chosen {
            step = add(&step, &candidate.step, *weight);
            normal = add(&normal, &candidate.normal, *weight);
        }
        self.mean = add(&self.mean, &step, self.sigma);

        let share = (p.rate_of_sigma * (2.0 - p.rate_of_sigma) * p.effective).sqrt();
        let kept = scaled(&self.path_of_sigma, 1.0 - p.rate_of_sigma);
        self.path_of_sigma = add(&kept, &normal, share);
        let length = dot(&self.path_of_sigma, &self.path_of_sigma).sqrt();
        let settled = 1.0 - (1.0 - p.rate_of_sigma).powi(2 * self.generation);
        let is_steady = length / settled.sqrt() / p.expected_length < 1.4 + 2.0 / (n as f64 + 1.0);

        let kept = scaled(&self.path_of_covariance, 1.0 - p.rate_of_path);
        let share = if is_steady {
            (p.rate_of_path * (2.0 - p.rate_of_path) * p.effective).sqrt()
        } else {
            0.0
        };
        self.path_of_covariance = add(&kept, &step, share);
        let lost = if is_steady {
            0.0
        } else {
            p.rate_of_path * (2.0 - p.rate_of_path)
        };
        for i in 0..n {
            for j in 0..n {
                let old = self.covariance[i][j];
                let one = self.path_of_covariance[i] * self.path_of_covariance[j] + lost * old;
                let rank: f64 = chosen
                    .iter()
                    .map(|(weight, candidate)| weight * candidate.step[i] * candidate.step[j])
                    .sum();
                self.covariance[i][j] = (1.0 - p.rate_of_one - p.rate_of_rank) * old
                    + p.rate_of_one * one
                    + p.rate_of_rank * rank;
            }
        }
        self.sigma *= (p.rate_of_sigma / p.damping * (length / p.expected_length - 1.0)).exp();
        self.factor = cholesky(&self.covariance);
    }
}

impl Parameters {
    fn new(dimensions: usize, population: usize) -> Self {
        let n = dimensions as f64;
        let half = population / 2;
        let raw: Vec<f64> = (1..=half)
            .map(|rank| (half as f64 + 0.5).ln() - (rank as f64).ln())
            .collect();
        let weights = scaled(&raw, 1.0 / raw.iter().sum::<f64>());
        let effective = 1.0 / dot(&weights, &weights);
        let rate_of_sigma = (effective + 2.0) / (n + effective + 5.0);
        let rate_of_one = 2.0 / ((n + 1.3).powi(2) + effective);
        let rank = 2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0).powi(2) + effective);
        Self {
            population,
            weights,
            effective,
            rate_of_path: (4.0 + effective / n) / (n + 4.0 + 2.0 * effective / n),
            rate_of_sigma,
            rate_of_one,
            rate_of_rank: rank.min(1.0 - rate_of_one),
            damping: 1.0
                + 2.0 * (((effective - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0)
                + rate_of_sigma,
            expected_length: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
        }
    }
}

/// Xorshift, and Box and Muller's normal distribution of it.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform().max(1e-12), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `a + factor * b`.
fn add(a: &[f64], b: &[f64], factor: f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + factor * b).collect()
}

fn scaled(a: &[f64], factor: f64) -> Vec<f64> {
    a.iter().map(|a| a * factor).collect()
}

/// The lower triangle whose product with its transpose is `matrix`; the rest is 0.
fn cholesky(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut factor = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let rest = matrix[i][j] - dot(&factor[i][..j], &factor[j][..j]);
            factor[i][j] = if i == j {
                rest.max(1e-10).sqrt()
            } else {
                rest / factor[j][j]
            };
        }
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A narrow valley across all axes, whose floor is 3 at (1, 2, 3, 4).
    fn valley(point: &[f64]) -> f64 {
        let off: Vec<f64> = (1..).zip(point).map(|(i, x)| x - f64::from(i)).collect();
        let sum: f64 = off.iter().sum();
        3.0 + 100.0 * sum * sum + dot(&off, &off)
    }

    fn search(seed: u64) -> Vec<f64> {
        let mut cma = Cma::new(vec![0.0; 4], 10, seed);
        for _ in 0..150 {
            let candidates = cma.ask();
            cma.tell(
                candidates
                    .into_iter()
                    .map(|c| (valley(&c.point), c))
                    .collect(),
            );
        }
        cma.mean().to_vec()
    }

    #[test]
    fn the_floor_of_a_narrow_valley_is_found() {
        let found = search(1);
        assert!(valley(&found) < 3.0 + 1e-6, "{found:?}");
    }

    #[test]
    fn equal_seeds_give_equal_searches() {
        assert_eq!(search(7), search(7));
        assert_ne!(search(7), search(8));
    }
}
