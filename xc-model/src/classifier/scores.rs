//! Scores of ranked labels: what a loss makes of their logits, such that they fall strictly where logits do.
//!
//! A score depends on the logits that rank above its own, not on how many labels are answered.

use xc_nn::Loss;
use xc_nn::loss::Total;
use xc_sparse::rank::{LabelId, Scored, rank_order};

/// Scores of a list, and their bits.
#[derive(Default)]
pub(super) struct Scores {
    values: Vec<f32>,
    bits: Vec<i64>,
}

/// The best logit has at least so many steps of f32 above 0, each further one a step less: scores that are
/// 0 to a loss are set apart without knowing how many follow.
const FLOOR: i64 = 1 << 16;

impl Scores {
    /// What a loss makes of the logits of a list, each for itself.
    pub(super) fn of(&mut self, list: &[Scored], loss: Loss) {
        self.values.clear();
        self.values.extend(list.iter().map(|s| s.score));
        loss.scores(&mut self.values);
    }

    /// What a loss makes of the logits of a list; one that compares labels compares the first `n`, whatever follows.
    pub(super) fn among_first(&mut self, list: &[Scored], n: usize, loss: Loss) {
        if loss.is_separable() {
            return self.of(list, loss);
        }
        self.values.clear();
        self.values.extend(list.iter().map(|s| s.score));
        let mut total = Total::EMPTY;
        total.add(loss, &self.values[..n.min(list.len())]);
        loss.log_scores(&mut self.values, total);
        // The exponential of numbers that are at most 0.
        Loss::Nce.scores(&mut self.values);
    }

    /// Those of a list among the scores of all labels.
    pub(super) fn pick(&mut self, list: &[Scored], all: &[f32]) {
        self.values.clear();
        self.values.extend(list.iter().map(|s| all[s.label as usize]));
    }

    /// Those of a list among the scores of the labels that were found.
    pub(super) fn of_found(&mut self, list: &[Scored], found: &[Scored], all: &[f32]) {
        self.values.clear();
        let place = |label: LabelId| found.iter().position(|s| s.label == label);
        self.values.extend(list.iter().map(|s| place(s.label).map_or(f32::NAN, |at| all[at])));
    }

    /// Whether they and the logits of their list are finite.
    pub(super) fn are_finite(&self, list: &[Scored]) -> bool {
        list.iter().all(|s| s.score.is_finite()) && self.values.iter().all(|s| s.is_finite())
    }

    /// Replaces the logits of a list, best first, by scores in [0, 1] that fall strictly where
    /// logits do: scores that the loss does not tell apart are set one step of f32 apart, so that
    /// whoever sorts by score gets the ranking. Equal logits share a score.
    pub(super) fn order(&mut self, list: &mut [Scored]) {
        let Self { values, bits } = self;
        // The bits of numbers from 0 on are ordered as the numbers are.
        bits.clear();
        let mut floor = FLOOR;
        for (i, value) in values.iter().enumerate() {
            let own = i64::from(value.max(0.0).to_bits());
            bits.push(match bits.last() {
                None => own.max(floor),
                Some(&above) if list[i].score == list[i - 1].score => above,
                Some(above) => {
                    floor = (floor - 1).max(0);
                    own.min(above - 1).max(floor)
                }
            });
        }
        // Scores are finite.
        list.iter_mut().zip(bits).for_each(|(item, bits)| item.score = f32::from_bits(*bits as u32));
    }
}

/// Of labels that were chosen from some, best first: all labels that rank above one whose score they may
/// change, and those chosen that do. `logits` are those of all labels.
pub(super) fn rivals(logits: &[f32], chosen: &[Scored], loss: Loss, above: &mut Vec<Scored>) {
    let best = if loss.is_separable() { 0.0 } else { logits.iter().copied().fold(f32::NEG_INFINITY, f32::max) };
    let has_rival = |s: &&Scored| {
        let end = s.score + reach(loss, s.score, best);
        end > s.score && logits.iter().fold(false, |any, &z| any | (z > s.score && z <= end))
    };
    let Some(&Scored { score: lowest, .. }) = chosen.iter().rev().find(has_rival) else { return };
    let all = logits.iter().zip(0..).map(|(&score, label)| Scored { label, score });
    above.extend(all.filter(|s| s.score >= lowest));
    above.sort_unstable_by(|&a, &b| rank_order(a, b));
}

/// How far above a logit others may change its score: 0 where each logit has a score of its own. `best` is the
/// largest logit, for a loss that looks at all of them.
fn reach(loss: Loss, z: f32, best: f32) -> f32 {
    /// Steps of f32 that labels above are at most assumed to take.
    const STEPS: i32 = 256;
    let next = z.next_up().next_up();
    if !loss.is_separable() {
        // Scores are proportional to exponentials of what logits are below the best, which is rounded, too; where
        // they are 0, all of them count.
        let below = best - z;
        let rounded = below.next_up() - below;
        let is_close = next - z < 4.0 * (f32::EPSILON + rounded);
        return match z < best - 70.0 {
            true => f32::INFINITY,
            false if is_close => STEPS as f32 * f32::EPSILON + 2.0 * rounded,
            false => 0.0,
        };
    }
    let steps = |end: f32| {
        let mut both = [z, end];
        loss.scores(&mut both);
        let [low, high] = both.map(|score| i64::from(score.to_bits()));
        (low, high - low)
    };
    let (low, fine) = steps(next);
    if fine > 1 && low > FLOOR {
        return 0.0;
    }
    let mut wide = 1e-6;
    while low > FLOOR && wide < 1e3 {
        if steps(z + wide).1 >= i64::from(STEPS) {
            return wide;
        }
        wide *= 2.0;
    }
    f32::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranked(logits: &[f32]) -> Vec<Scored> {
        let mut list: Vec<Scored> = logits.iter().zip(0..).map(|(&score, label)| Scored { label, score }).collect();
        list.sort_by(|&a, &b| rank_order(a, b));
        list
    }

    fn ordered(mut list: Vec<Scored>, loss: Loss, all: Option<&[f32]>) -> Vec<Scored> {
        let mut scores = Scores::default();
        match all {
            Some(all) => scores.pick(&list, all),
            None => scores.of(&list, loss),
        }
        scores.order(&mut list);
        list
    }

    #[test]
    fn scores_keep_the_order_of_logits_that_a_loss_does_not_tell_apart() {
        let list = ordered(ranked(&[3.0, 2.0, 2.0, 1.5, 0.0, -40.0, -41.0]), Loss::SquaredHinge, None);
        let scores: Vec<f32> = list.iter().map(|s| s.score).collect();
        assert_eq!(scores[0], 1.0);
        assert_eq!(scores[1], scores[2]);
        assert!(scores[0] > scores[1] && scores[2] > scores[3] && scores[3] > 0.9999 && scores[3] > scores[4]);
        assert!((scores[4] - (-1.0f32).exp()).abs() < 1e-6);
        assert!(scores[5] > scores[6] && scores[5] < 1e-40 && scores[6] < 1e-40);
    }

    #[test]
    fn a_softmax_of_the_first_labels_does_not_depend_on_those_behind() {
        let list = ranked(&[3.0, 2.0, 2.0, -1.0, -300.0]);
        let of = |list: &[Scored]| {
            let mut scores = Scores::default();
            scores.among_first(list, 3, Loss::Softmax);
            scores.values
        };
        let whole = of(&list);
        assert!((whole[..3].iter().sum::<f32>() - 1.0).abs() < 1e-6 && whole[0] > whole[1], "{whole:?}");
        assert_eq!((whole[1], whole[4], of(&list[..3])), (whole[2], 0.0, whole[..3].to_vec()));
        assert_eq!(of(&[]), [0.0; 0]);
    }

    proptest! {
        #[test]
        fn a_smaller_logit_has_a_smaller_score(
            logits in prop::collection::vec(prop_oneof![-200.0f32..200.0, -1.5f32..1.5, Just(0.0f32)], 0..80),
            loss in prop::sample::select(vec![Loss::Bce, Loss::SquaredHinge, Loss::Softmax]),
        ) {
            let list = ranked(&logits);
            let scores = ordered(list.clone(), loss, None);
            prop_assert!(scores.iter().all(|s| (0.0..=1.0).contains(&s.score)));
            for (z, s) in list.windows(2).zip(scores.windows(2)) {
                let is_less = s[0].score > s[1].score;
                prop_assert!(if z[0].score == z[1].score { s[0].score == s[1].score } else { is_less }, "{z:?} {s:?}");
            }
        }

        #[test]
        fn a_score_does_not_depend_on_how_many_labels_are_answered_or_which_others_are_candidates(
            logits in prop::collection::vec(prop_oneof![
                -200.0f32..200.0, -1.5f32..1.5, 8.0f32..9.0, Just(0.0f32), Just(9.0), Just(f32::from_bits(0x4110_0001))
            ], 1..80),
            loss in prop::sample::select(vec![Loss::Bce, Loss::SquaredHinge, Loss::Softmax, Loss::Nce]),
            k in 1usize..80, every in 1usize..9,
        ) {
            let mut all = logits.clone();
            loss.scores(&mut all);
            let of_all = (!loss.is_separable()).then_some(&all[..]);
            let whole = ordered(ranked(&logits), loss, of_all);
            let first: Vec<Scored> = ranked(&logits).into_iter().take(k).collect();
            prop_assert_eq!(&ordered(first, loss, of_all)[..], &whole[..k.min(whole.len())]);
            let candidates: Vec<Scored> = ranked(&logits).into_iter().skip(1).step_by(every).collect();
            let mut above = Vec::new();
            rivals(&logits, &candidates, loss, &mut above);
            let lowest = above.last().map_or(f32::INFINITY, |s| s.score);
            let mut list = above;
            list.extend(candidates.iter().filter(|s| s.score < lowest));
            let scores = ordered(list, loss, of_all);
            for s in &candidates {
                let of = |list: &[Scored]| list.iter().find(|o| o.label == s.label).map(|o| o.score.to_bits());
                prop_assert_eq!(of(&scores), of(&whole), "{:?}", s);
            }
        }
    }
}
