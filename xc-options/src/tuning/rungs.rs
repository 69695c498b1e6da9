//! What the trials are judged by, cheap before dear.
//!
//! ```text
//!   rung   learned from            judged by
//!   0      a third of the rows     the other two
//!   1      all but part 1          part 1             parts of --validation-fraction of the rows each
//!   2      all but part 2          part 2
//!   3      all but part 3, 4, 5    part 3, 4, 5       one after the other
//! ```
//!
//! With `--validation` the file judges both rungs there are: a third of the rows, and all.

use xc_data::HoldOut;
use xc_train::fit::FitError;

/// Trainings that a trial is judged by together.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// What is said of it.
    pub name: String,
    /// What each of the training runs holds out.
    pub hold_outs: Vec<Option<HoldOut>>,
    /// Rows to learn from in all, as a share of those of the file.
    pub work: f64,
}

/// The first rung whose training runs learn from about as many rows as the final model.
pub(super) const DECIDES_FROM: usize = 1;

/// Share of the rows of a part unless another is asked for.
const SHARE: f64 = 0.2;
/// Parts that are judged by, at most.
const MOST_PARTS: u32 = 5;
/// Share of the rows that the lowest rung learns from.
const FIRST: f64 = 1.0 / 3.0;

/// The rungs of a search.
///
/// # Errors
/// A share that leaves less than half of the rows to learn from.
pub(super) fn rungs(has_file: bool, share: Option<f64>, seed: u64) -> Result<Vec<Rung>, FitError> {
    if let Some(got) = share
        && (has_file || !(got > 0.0 && got <= 0.5))
    {
        return Err(FitError::usage(match has_file {
            true => format!("--validation-fraction {got}: --validation judges; one of the two is expected"),
            false => format!("--validation-fraction {got}: a share above 0, of at most 0.5 is expected"),
        }));
    }
    let first = HoldOut { share: 1.0 - FIRST, seed, part: 0 };
    let mut rungs = vec![Rung { name: "a third of the rows".to_owned(), hold_outs: vec![Some(first)], work: FIRST }];
    if has_file {
        rungs.push(Rung { name: "all rows".to_owned(), hold_outs: vec![None], work: 1.0 });
        return Ok(rungs);
    }
    let share = share.unwrap_or(SHARE);
    // One and a bit, so that five parts of 0.2 are five.
    let n_parts = ((1.0 + 1e-9) / share).min(f64::from(MOST_PARTS)) as u32;
    for (first, end) in [(0, 1), (1, 2), (2, n_parts)].into_iter().filter(|&(first, end)| first < end.min(n_parts)) {
        // Instances of the rungs before count too.
        let name = match end {
            1 => format!("part 1 of {n_parts}"),
            _ => format!("parts 1 to {end} of {n_parts}"),
        };
        let hold_outs: Vec<_> = (first..end).map(|part| Some(HoldOut { share, seed, part })).collect();
        let work = (1.0 - share) * hold_outs.len() as f64;
        rungs.push(Rung { name, hold_outs, work });
    }
    Ok(rungs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_held_out_one_after_the_other() {
        let of = |rungs: Vec<Rung>| -> Vec<(String, Vec<u32>)> {
            let parts = |rung: &Rung| rung.hold_outs.iter().flatten().map(|hold_out| hold_out.part).collect();
            rungs.iter().map(|rung| (rung.name.clone(), parts(rung))).collect()
        };
        let third = ("a third of the rows".to_owned(), vec![0]);
        let part = |name: &str, parts: &[u32]| (name.to_owned(), parts.to_vec());
        assert_eq!(
            of(rungs(false, None, 0).unwrap()),
            [
                third.clone(),
                part("part 1 of 5", &[0]),
                part("parts 1 to 2 of 5", &[1]),
                part("parts 1 to 5 of 5", &[2, 3, 4])
            ]
        );
        assert_eq!(
            of(rungs(false, Some(0.5), 0).unwrap()),
            [third.clone(), part("part 1 of 2", &[0]), part("parts 1 to 2 of 2", &[1])]
        );
        assert_eq!(of(rungs(false, Some(0.1), 0).unwrap()).len(), 4);
        assert_eq!(of(rungs(true, None, 0).unwrap()), [third, part("all rows", &[])]);
        for (has_file, share) in [(false, 0.0), (false, 0.6), (false, f64::NAN), (true, 0.1)] {
            assert!(rungs(has_file, Some(share), 0).is_err(), "{share}");
        }
    }
}
