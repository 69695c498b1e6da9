//! What every kernel has to give.

use super::{Asked, BLOCK, BLOCK_SIDES, Blocked, Coded, FEW, TOGETHER};

/// See [`super::keys`].
pub(super) fn keys(asked: Asked<'_>, coded: Coded<'_>, rows: &[u32], limit: f32, keys: &mut [f32; TOGETHER]) -> u64 {
    let mut near = 0;
    for (at, &row) in rows.iter().enumerate() {
        let bytes = &coded.bytes[row as usize * asked.bytes.len()..][..asked.bytes.len()];
        let sum = bytes.iter().zip(asked.bytes).map(|(&row, &query)| i32::from(row) * i32::from(query)).sum();
        keys[at] = key(asked, coded.sides[row as usize], sum);
        near |= u64::from(keys[at] <= limit) << at;
    }
    near
}

/// See [`super::block_keys`].
pub(super) fn block_keys(asked: Asked<'_>, blocks: Blocked<'_>, limit: f32, keys: &mut [f32; TOGETHER]) -> u64 {
    let mut near = 0;
    let bytes = blocks.bytes.chunks_exact(BLOCK * asked.bytes.len());
    for (block, (bytes, sides)) in bytes.zip(blocks.sides.as_chunks::<BLOCK_SIDES>().0).enumerate() {
        let mut sums = [0i32; BLOCK];
        for (rows, query) in bytes.as_chunks::<{ 4 * BLOCK }>().0.iter().zip(asked.bytes.as_chunks::<4>().0) {
            for (sum, row) in sums.iter_mut().zip(rows.as_chunks::<4>().0) {
                *sum += (0..4).map(|at| i32::from(row[at]) * i32::from(query[at])).sum::<i32>();
            }
        }
        for (row, sum) in sums.into_iter().enumerate() {
            let at = block * BLOCK + row;
            keys[at] = key(asked, [sides[row], sides[BLOCK + row]], sum);
            near |= u64::from(keys[at] <= limit) << at;
        }
    }
    near
}

/// The key of a row from its sum.
#[inline(always)]
pub(super) fn key(asked: Asked<'_>, [norm, scale]: [f32; 2], sum: i32) -> f32 {
    let product = asked.factor * scale * (sum - asked.shift) as f32;
    asked.norm + norm - product
}

/// See [`super::smallest`].
pub(super) fn smallest(keys: &[f32]) -> usize {
    let mut best = 0;
    for (at, &key) in keys.iter().enumerate() {
        if key < keys[best] {
            best = at;
        }
    }
    best
}

/// See [`super::largest`].
pub(super) fn largest(keys: &[f32], vertices: &[u32]) -> usize {
    let mut worst = 0;
    for at in 1..keys.len() {
        if keys[at] > keys[worst] || keys[at] == keys[worst] && vertices[at] > vertices[worst] {
            worst = at;
        }
    }
    worst
}

/// See [`super::insert`].
pub(super) fn insert(keys: &mut [f32; FEW], vertices: &mut [u32; FEW], key: f32, vertex: u32) {
    let mut at = FEW;
    while at > 0 && (key < keys[at - 1] || key == keys[at - 1] && vertex < vertices[at - 1]) {
        if at < FEW {
            (keys[at], vertices[at]) = (keys[at - 1], vertices[at - 1]);
        }
        at -= 1;
    }
    if at < FEW {
        (keys[at], vertices[at]) = (key, vertex);
    }
}
