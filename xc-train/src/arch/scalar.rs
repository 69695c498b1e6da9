//! The tile without vector instructions: defines what the others compute.

pub(super) const ROWS: usize = 4;
pub(super) const COLUMNS: usize = 8;

/// # Safety
/// `a` has `k * ROWS` values, `b` has `k * COLUMNS`, `c` has ROWS rows of COLUMNS values, `stride` apart.
pub(super) unsafe fn tile(k: usize, a: *const f32, b: *const f32, c: *mut f32, stride: usize) {
    // SAFETY: by the contract above; `c` is not read through another pointer meanwhile.
    let (a, b, c) = unsafe {
        (
            std::slice::from_raw_parts(a, k * ROWS),
            std::slice::from_raw_parts(b, k * COLUMNS),
            std::slice::from_raw_parts_mut(c, (ROWS - 1) * stride + COLUMNS),
        )
    };
    let mut sums = [[0.0f32; COLUMNS]; ROWS];
    for (i, row) in sums.iter_mut().enumerate() {
        row.copy_from_slice(&c[i * stride..][..COLUMNS]);
    }
    for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<COLUMNS>().0) {
        for (row, &a) in sums.iter_mut().zip(a) {
            for (sum, &b) in row.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
    for (i, row) in sums.iter().enumerate() {
        c[i * stride..][..COLUMNS].copy_from_slice(row);
    }
}
