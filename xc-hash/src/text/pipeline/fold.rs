//! Feature hashing of weighted slots: very many slots into a given number of features.
//!
//! ```text
//!   slots      3: 0.5      17: 2.0      900: 1.5      each slot's number is hashed
//!                 │  ┌────────┼──────────────┘
//!   features   1: 0.5   4: 2.0 + 1.5                  colliding weights are summed
//! ```
//!
//! The sum is linear in the row: folding a sum of rows gives the sum of the folded rows.

use super::super::block::slot_of;
use super::super::weighting::narrow;
use super::{HashSign, HashingParams};
use crate::murmur3_32;

/// Memory of one fold, reused.
#[derive(Clone, Debug, Default)]
pub(super) struct FoldScratch {
    /// Feature in the high half, position of the slot in the low one.
    order: Vec<u64>,
    sums: Vec<f32>,
}

impl FoldScratch {
    /// Replaces slots and their weights by features and their sums; a feature whose sum is 0 is
    /// left out.
    pub(super) fn fold(&mut self, params: HashingParams, slots: &mut Vec<u32>, weights: &mut Vec<f32>) {
        let Self { order, sums } = self;
        order.clear();
        for (position, (slot, weight)) in slots.iter().zip(weights.iter_mut()).enumerate() {
            let hash = murmur3_32(&slot.to_le_bytes(), params.seed);
            if params.sign == HashSign::Alternate && (hash as i32) < 0 {
                *weight = -*weight;
            }
            order.push((slot_of(hash, params.n_features) as u64) << 32 | position as u64);
        }
        // The position is part of the key, so each sum has one order.
        order.sort_unstable();
        slots.clear();
        sums.clear();
        sums.reserve(order.len());
        for run in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let sum: f64 = run.iter().map(|&key| weights[key as u32 as usize] as f64).sum();
            if sum != 0.0 {
                slots.push((run[0] >> 32) as u32);
                sums.push(narrow(sum));
            }
        }
        weights.clear();
        weights.extend_from_slice(sums);
    }
}
