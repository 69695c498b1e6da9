//! Losses over labels that were chosen: corrections of those that are false.

use super::{LANES, Loss, RUN, Shares, Stretch, Total};
use std::ops::Range;
use xc_buffer::{Loop, vectorised, vectorised_loop};

/// What becomes of labels that a sampler chose; one entry of each list a label.
///
/// ```text
///   softmax   z - log_q where the label is false, z where it is true
///   nce       z - log_q where it is false, z - true_log_q where it is true, then as bce
///   others    loss and gradient times weight where the label is false
/// ```
///
/// A label of `log_q` infinite has no part in softmax and nce where it is false.
#[derive(Clone, Copy, Debug)]
pub struct Corrections<'a> {
    /// Weight of each label where it is false.
    pub weight: &'a [f32],
    /// Logarithm of the chance that it was chosen.
    pub log_q: &'a [f32],
    /// The same of labels that are true, chosen or not; only nce looks at it.
    pub true_log_q: Option<&'a [f32]>,
}

impl Corrections<'_> {
    /// Those of some labels.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn part(&self, range: Range<usize>) -> Self {
        Self {
            weight: &self.weight[range.clone()],
            log_q: &self.log_q[range.clone()],
            true_log_q: self.true_log_q.map(|log_q| &log_q[range]),
        }
    }
}

impl Loss {
    /// Takes log chances away from the logits of a stretch, if the loss does so: comes before
    /// [`Total::add`] and [`Loss::gradient_of_chosen`].
    ///
    /// # Panics
    /// If a true label lies outside the stretch, or corrections are of fewer labels.
    pub fn correct(self, logits: &mut [f32], of: Stretch<'_>, by: Corrections<'_>) {
        if !matches!(self, Self::Softmax | Self::Nce) {
            return;
        }
        for range in of.falses(logits.len()) {
            let (logits, log_q) = (&mut logits[range.clone()], &by.log_q[range]);
            vectorised(|| logits.iter_mut().zip(log_q).for_each(|(z, log_q)| *z -= log_q));
        }
        if let (Self::Nce, Some(log_q)) = (self, by.true_log_q) {
            of.positives.iter().map(|&j| (j - of.first) as usize).for_each(|j| logits[j] -= log_q[j]);
        }
    }

    /// [`Loss::gradient`] of corrected logits, false labels weighted if the loss adds up over
    /// labels.
    ///
    /// # Panics
    /// As [`Loss::correct`].
    pub fn gradient_of_chosen(
        self,
        logits: &mut [f32],
        of: Stretch<'_>,
        by: Corrections<'_>,
        total: Total,
        scale: f32,
    ) -> f64 {
        match self {
            Self::Bce | Self::SquaredHinge | Self::Own(_) => {
                let mut loss = 0.0;
                for range in of.falses(logits.len()) {
                    let (logits, weight) = (&mut logits[range.clone()], &by.weight[range]);
                    loss += vectorised_loop(Weighted { loss: self, logits, weight, scale });
                }
                for j in of.positives.iter().map(|&j| (j - of.first) as usize) {
                    let (value, gradient) = self.loss_and_gradient(logits[j], true, Shares::NONE);
                    loss += f64::from(value);
                    logits[j] = scale * gradient;
                }
                loss
            }
            Self::Softmax | Self::Nce => self.gradient(logits, of, total, scale),
        }
    }
}

impl<'a> Stretch<'a> {
    /// The places between true labels, of a stretch of `len` logits.
    #[inline(always)]
    pub(crate) fn falses(self, len: usize) -> impl Iterator<Item = Range<usize>> + 'a {
        let places = self.positives.iter().map(move |&j| (j - self.first) as usize);
        let starts = std::iter::once(0).chain(places.clone().map(|j| j + 1));
        starts.zip(places.chain([len])).map(|(start, end)| start..end).filter(|range| !range.is_empty())
    }
}

/// Turns logits of false labels into weighted gradients; gives their weighted loss.
struct Weighted<'a> {
    loss: Loss,
    logits: &'a mut [f32],
    weight: &'a [f32],
    scale: f32,
}

impl Weighted<'_> {
    #[inline(always)]
    fn of(self, loss: Loss) -> f64 {
        let mut total = 0.0f64;
        for (logits, weight) in self.logits.chunks_mut(RUN).zip(self.weight.chunks(RUN)) {
            let mut lanes = [0.0f32; LANES];
            let judge = |z: &mut f32, weight: f32| {
                let (value, gradient) = loss.loss_and_gradient(*z, false, Shares::NONE);
                *z = gradient * weight * self.scale;
                value * weight
            };
            let ((groups, rest), (weights, last)) = (logits.as_chunks_mut::<LANES>(), weight.as_chunks::<LANES>());
            for (group, weights) in groups.iter_mut().zip(weights) {
                for ((lane, z), &weight) in lanes.iter_mut().zip(group).zip(weights) {
                    *lane += judge(z, weight);
                }
            }
            for ((lane, z), &weight) in lanes.iter_mut().zip(rest).zip(last) {
                *lane += judge(z, weight);
            }
            total += lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
        }
        total
    }
}

impl Loop for Weighted<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        match self.loss {
            Loss::SquaredHinge => self.of(Loss::SquaredHinge),
            Loss::Own(loss) => self.of(Loss::Own(loss)),
            _ => self.of(Loss::Bce),
        }
    }
}
