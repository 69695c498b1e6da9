//! States that a layer keeps of a forward pass for its gradient.

use super::gelu::VALUES;
use crate::Activations;
use xc_buffer::parallel::for_each_part;
use xc_buffer::{Loop, vectorised_loop};
use xc_dense::{MatmulPrecision, bf16_of_products};

/// A state that is kept as it is or, where products read bf16, as the bf16 that they read: in half of the memory.
///
/// What is kept as it is moves to and fro: a buffer that layers share is empty while none of them works in it.
#[derive(Default)]
pub(super) struct KeptState {
    whole: Activations,
    halves: Vec<u16>,
    shape: (usize, usize),
}

impl KeptState {
    /// Lends its memory to `states`, which are computed next.
    pub(super) fn open(&mut self, products: MatmulPrecision, states: &mut Activations) {
        if products == MatmulPrecision::F32 {
            std::mem::swap(&mut self.whole, states);
        }
    }

    /// Keeps `states`, if somebody learns from them.
    pub(super) fn keep(&mut self, products: MatmulPrecision, learns: bool, states: &mut Activations) {
        match products {
            MatmulPrecision::F32 => std::mem::swap(&mut self.whole, states),
            MatmulPrecision::Bf16 if learns => self.round(states),
            MatmulPrecision::Bf16 => {}
        }
    }

    /// Puts what was kept into `states`.
    pub(super) fn restore(&mut self, products: MatmulPrecision, states: &mut Activations) {
        match products {
            MatmulPrecision::F32 => std::mem::swap(&mut self.whole, states),
            MatmulPrecision::Bf16 => self.widen(states),
        }
    }

    /// Takes back what it lent, with the values that it has then.
    pub(super) fn close(&mut self, products: MatmulPrecision, states: &mut Activations) {
        self.open(products, states);
    }

    fn round(&mut self, states: &Activations) {
        let values = states.values();
        self.shape = (states.len(), states.width());
        self.halves.resize(self.halves.len().max(values.len()), 0);
        for_each_part(&mut self.halves[..values.len()], VALUES, |part, halves| {
            vectorised_loop(Round { values: &values[part * VALUES..][..halves.len()], halves });
        });
    }

    fn widen(&self, states: &mut Activations) {
        states.reshape(self.shape.0, self.shape.1);
        for_each_part(states.values_mut(), VALUES, |part, values| {
            vectorised_loop(Widen { halves: &self.halves[part * VALUES..][..values.len()], values });
        });
    }
}

struct Round<'a> {
    values: &'a [f32],
    halves: &'a mut [u16],
}

impl Loop for Round<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.halves.iter_mut().zip(self.values).for_each(|(half, &value)| *half = bf16_of_products(value));
    }
}

struct Widen<'a> {
    halves: &'a [u16],
    values: &'a mut [f32],
}

impl Loop for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let widen = |half: u16| f32::from_bits(u32::from(half) << 16);
        self.values.iter_mut().zip(self.halves).for_each(|(value, &half)| *value = widen(half));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xc_dense::{MatMut, MatRef, MatmulScratch, Start, product};

    fn states(rows: usize, width: usize, values: &[f32]) -> Activations {
        let mut states = Activations::default();
        states.reshape(rows, width);
        states.values_mut().copy_from_slice(values);
        states
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    proptest! {
        /// Any bits, those of NaN and of the smallest numbers among them: products do not tell states from what was kept.
        #[test]
        fn products_read_what_was_kept(width in 0usize..40, seeds in prop::collection::vec(any::<u32>(), 40 * 9)) {
            for rows in [0, 1, 8] {
                let values: Vec<f32> = seeds[..rows * width].iter().map(|&bits| f32::from_bits(bits)).collect();
                let others: Vec<f32> = seeds[..width].iter().rev().map(|&bits| f32::from_bits(bits)).collect();
                for products in [MatmulPrecision::F32, MatmulPrecision::Bf16] {
                    let (mut kept, mut shared) = (KeptState::default(), Activations::default());
                    for _ in 0..2 {
                        kept.open(products, &mut shared);
                        shared.copy_from(&states(rows, width, &values));
                        kept.keep(products, true, &mut shared);
                        if products == MatmulPrecision::Bf16 {
                            shared.values_mut().fill(7.0);
                        }
                        kept.restore(products, &mut shared);
                        prop_assert_eq!((shared.len(), shared.width()), (rows, width));
                        let of = |values: &[f32]| {
                            let mut sums = vec![0.0; rows];
                            let (a, b) = (MatRef::new(values, rows, width), MatRef::new(&others, width, 1));
                            product(MatMut::new(&mut sums, rows, 1), a, b, Start::Zero, products, &mut MatmulScratch::default());
                            // Which NaN a sum is depends on the instruction set.
                            sums.iter_mut().filter(|sum| sum.is_nan()).for_each(|sum| *sum = f32::NAN);
                            bits(&sums)
                        };
                        prop_assert_eq!(of(shared.values()), of(&values));
                        kept.close(products, &mut shared);
                    }
                }
            }
        }
    }

    #[test]
    fn parts_are_where_they_were() {
        let values: Vec<f32> = (0..2 * VALUES + 3).map(|i| (i % 251) as f32).collect();
        let (mut kept, mut shared) = (KeptState::default(), states(1, values.len(), &values));
        kept.keep(MatmulPrecision::Bf16, true, &mut shared);
        shared.values_mut().fill(0.0);
        kept.keep(MatmulPrecision::Bf16, false, &mut shared);
        kept.restore(MatmulPrecision::Bf16, &mut shared);
        assert_eq!(shared.values(), values);
    }
}
