//! Medians and ratios with intervals that assume nothing about how samples are distributed.
//!
//! The interval of a median is made of order statistics: the k-th smallest and the k-th largest
//! sample, with the largest k whose coverage (a binomial sum) is still 95 %. Fewer than six
//! samples cannot reach 95 %: the interval is then all of them, and nothing is concluded from it.

/// The coverage of an interval.
pub const COVERAGE: f64 = 0.95;

/// A median and the interval that holds the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the samples.
    pub median: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
    /// Samples it was made of.
    pub samples: usize,
}

impl Estimate {
    /// `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Estimate> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let last = n.checked_sub(1)?;
        let median = (sorted[last / 2] + sorted[n / 2]) / 2.0;
        let cut = rank(n).saturating_sub(1);
        Some(Estimate { median, lo: sorted[cut], hi: sorted[last - cut], samples: n })
    }

    /// Whether there were enough samples for the interval to have its coverage.
    pub fn is_sure(&self) -> bool {
        rank(self.samples) > 0
    }
}

/// The largest k for which the k-th smallest and k-th largest of `n` samples enclose the median with
/// the wanted coverage; 0 if there is none.
fn rank(n: usize) -> usize {
    let mut outside = 0.0;
    let mut probability = 0.5f64.powi(n as i32);
    for k in 0..n / 2 {
        // `outside`: that at most k samples lie on one given side.
        outside += probability;
        if 2.0 * outside > 1.0 - COVERAGE {
            return k;
        }
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    n / 2
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first is better.
    Better,
    /// The first is worse.
    Worse,
    /// The interval holds 1, or there were too few runs.
    NoDifference,
}

/// A comparison of two arms, run by run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio(pub Estimate);

impl Ratio {
    /// The ratio of the first to the second, of samples that were taken next to each other. Pairs
    /// without a finite ratio are left out.
    pub fn of(first: &[f64], second: &[f64]) -> Option<Ratio> {
        let pairs: Vec<f64> = first.iter().zip(second).map(|(a, b)| a / b).collect();
        Estimate::of(&pairs).map(Ratio)
    }

    /// What it says.
    pub fn verdict(&self) -> Verdict {
        let Estimate { lo, hi, .. } = self.0;
        match () {
            _ if !self.0.is_sure() => Verdict::NoDifference,
            _ if lo > 1.0 => Verdict::Better,
            _ if hi < 1.0 => Verdict::Worse,
            _ => Verdict::NoDifference,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_published_tables() {
        // Ranks of the distribution-free 95 % interval of a median.
        let table =
            [(5, 0), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18)];
        for (n, k) in table {
            assert_eq!(rank(n), k, "of {n}");
        }
        assert_eq!(rank(0), 0);
    }

    #[test]
    fn median_and_interval() {
        let of = |v: &[f64]| Estimate::of(v).unwrap();
        assert_eq!(of(&[3.0, 1.0, 2.0]), Estimate { median: 2.0, lo: 1.0, hi: 3.0, samples: 3 });
        assert!(!of(&[3.0, 1.0, 2.0]).is_sure());
        let ten: Vec<f64> = (1..=10).map(f64::from).rev().collect();
        assert_eq!(of(&ten), Estimate { median: 5.5, lo: 2.0, hi: 9.0, samples: 10 });
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(of(&[f64::NAN, 4.0]).median, 4.0);
    }

    /// Draws from a lopsided distribution: the interval holds the true median in 95 % of the cases
    /// or a little more.
    #[test]
    fn the_interval_covers_what_it_says() {
        let mut rng = crate::rng::Rng::new(7);
        for n in [6, 10, 15] {
            let holds = (0..4000).filter(|_| {
                let draw: Vec<f64> = (0..n).map(|_| -rng.unit().ln()).collect();
                let e = Estimate::of(&draw).unwrap();
                (e.lo..=e.hi).contains(&std::f64::consts::LN_2)
            });
            let share = holds.count() as f64 / 4000.0;
            assert!((0.94..0.995).contains(&share), "{share} of {n}");
        }
    }

    #[test]
    fn pairs_cancel_what_both_suffer() {
        let load = [1.0, 3.0, 2.0, 5.0, 4.0, 1.0];
        let fast: Vec<f64> = load.iter().map(|l| 200.0 / l).collect();
        let slow: Vec<f64> = load.iter().map(|l| 100.0 / l).collect();
        let ratio = Ratio::of(&fast, &slow).unwrap();
        assert_eq!((ratio.0.lo, ratio.0.hi), (2.0, 2.0));
        assert_eq!(ratio.verdict(), Verdict::Better);
        assert_eq!(Ratio::of(&slow, &fast).unwrap().verdict(), Verdict::Worse);
    }

    #[test]
    fn it_says_when_it_cannot_tell() {
        let a = [1.0, 1.2, 0.9, 1.1, 1.0, 0.8];
        assert_eq!(Ratio::of(&a, &[1.0; 6]).unwrap().verdict(), Verdict::NoDifference);
        // Clear, but three runs are no proof.
        assert_eq!(Ratio::of(&[2.0; 3], &[1.0; 3]).unwrap().verdict(), Verdict::NoDifference);
        assert_eq!(Ratio::of(&[], &[]), None);
    }
}
