//! Weights of any stored type, with what an optimiser remembers of them, to be changed.

use crate::optim::Change;
use crate::parameter::{Decay, RowsMut, place_in_moment, places_in_moment};
use xc_buffer::{FloatBuffer, FloatSliceMut};
use xc_hash::stream::mix;

/// Neighbouring weights and their moments, to be changed by one task. Those that are not stored as
/// f32 are widened, changed, and rounded stochastically.
pub(crate) struct StoredMut<'a> {
    values: FloatSliceMut<'a>,
    moments: [Option<FloatSliceMut<'a>>; 2],
}

/// Buffers of [`StoredMut::change`].
#[derive(Default)]
pub(crate) struct Widened {
    values: [Vec<f32>; 3],
    before: Vec<f32>,
}

impl<'a> StoredMut<'a> {
    /// All weights; each moment is as long.
    pub(crate) fn new(values: &'a mut FloatBuffer, moments: &'a mut [FloatBuffer]) -> Self {
        let mut moments = moments.iter_mut().map(FloatBuffer::to_mut);
        Self { values: values.to_mut(), moments: [moments.next(), moments.next()] }
    }

    /// Number of weights.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether a long stretch is changed as its rows are, one by one.
    pub(crate) fn is_plain(&self) -> bool {
        let is_f32 = |values: &FloatSliceMut<'_>| matches!(values, FloatSliceMut::F32(_));
        is_f32(&self.values) && self.moments.iter().flatten().all(is_f32)
    }

    /// The first `at` weights and the rest.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        let n = self.values.len();
        let (values, values_b) = self.values.split_at(at);
        let cut = |moment: FloatSliceMut<'a>| {
            let at = place_in_moment(at, n, moment.len());
            moment.split_at(at)
        };
        let [first, second] = self.moments.map(|moment| match moment.map(cut) {
            Some((a, b)) => (Some(a), Some(b)),
            None => (None, None),
        });
        (Self { values, moments: [first.0, second.0] }, Self { values: values_b, moments: [first.1, second.1] })
    }

    /// Weights from place `at` on: as they lie there, or widened into `buffer`.
    #[inline(always)]
    pub(crate) fn row<'b>(&'b self, at: usize, len: usize, buffer: &'b mut Vec<f32>) -> &'b [f32] {
        if let FloatSliceMut::F32(values) = &self.values {
            return &values[at..at + len];
        }
        buffer.resize(len, 0.0);
        self.values.widen(at..at + len, buffer);
        buffer
    }

    /// Asks for a row of weights and its moments, which will be changed soon.
    pub(crate) fn prefetch(&self, at: usize, len: usize) {
        for values in std::iter::once(&self.values).chain(self.moments.iter().flatten()) {
            values.prefetch(places_in_moment(at..at + len, self.values.len(), values.len()));
        }
    }

    /// As [`StoredMut::change`]; gives the square of the length of the change.
    pub(crate) fn change_measured(
        &mut self,
        at: usize,
        gradient: &[f32],
        change: &Change,
        key: u64,
        widened: &mut Widened,
    ) -> f32 {
        let range = at..at + gradient.len();
        let mut before = std::mem::take(&mut widened.before);
        before.resize(gradient.len(), 0.0);
        self.values.widen(range.clone(), &mut before);
        self.change(at, gradient, change, key, widened);
        let after = &mut widened.values[0];
        after.resize(gradient.len(), 0.0);
        self.values.widen(range, after);
        let squares = before.iter().zip(&*after).map(|(a, b)| (a - b) * (a - b)).sum();
        widened.before = before;
        squares
    }

    /// Applies the rule to the weights from place `at` on. `key` names the random streams of
    /// rounding.
    pub(crate) fn change(&mut self, at: usize, gradient: &[f32], change: &Change, key: u64, widened: &mut Widened) {
        let len = gradient.len();
        let range = at..at + len;
        let n = self.values.len();
        let of_moment = |moment: &FloatSliceMut<'_>| places_in_moment(at..at + len, n, moment.len());
        // In place where nothing is to be widened.
        if let FloatSliceMut::F32(weights) = &mut self.values {
            let mut slices: [Option<&mut [f32]>; 2] = [None, None];
            let mut is_plain = true;
            for (slice, moment) in slices.iter_mut().zip(&mut self.moments) {
                let of = moment.as_ref().map_or(0..0, of_moment);
                match moment {
                    Some(FloatSliceMut::F32(values)) => *slice = Some(&mut values[of]),
                    Some(_) => is_plain = false,
                    None => {}
                }
            }
            if is_plain {
                let [first, second] = slices.map(Option::unwrap_or_default);
                return RowsMut::new(&mut weights[range], first, second, len, Decay::Yes).update(gradient, change);
            }
        }
        let Widened { values: scratch, .. } = widened;
        let [weights, first, second] = scratch;
        weights.resize(len, 0.0);
        self.values.widen(range, weights);
        let [a, b] = &self.moments;
        for (moment, values) in [(a, &mut *first), (b, &mut *second)] {
            values.clear();
            if let Some(moment) = moment {
                let of = of_moment(moment);
                values.resize(of.len(), 0.0);
                moment.widen(of, values);
            }
        }
        RowsMut::new(weights, first, second, len, Decay::Yes).update(gradient, change);
        // Three streams of one stretch: the numbers 0, 3, 6, ... and so on.
        let random = |which: u64| {
            let mut number = which;
            move || {
                number += 3;
                (mix(key, number) >> 32) as u32
            }
        };
        self.values.store(at, weights, random(0));
        let [a, b] = &mut self.moments;
        for (which, (moment, values)) in [(a, first), (b, second)].into_iter().enumerate() {
            if let Some(moment) = moment {
                let first = of_moment(moment).start;
                moment.store(first, values, random(which as u64 + 1));
            }
        }
    }
}

impl<'a> From<RowsMut<'a>> for StoredMut<'a> {
    fn from(rows: RowsMut<'a>) -> Self {
        let moment = |values: &'a mut [f32]| (!values.is_empty()).then_some(FloatSliceMut::F32(values));
        Self { values: FloatSliceMut::F32(rows.values), moments: [moment(rows.first), moment(rows.second)] }
    }
}
