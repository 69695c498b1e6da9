//! Sizes in the arrays of a level.

/// Entries of padding behind the values: a full vector may be loaded at the last one.
pub(crate) const VALUE_PADDING: usize = 16;

/// Mask words of a row for a chunk of `width` children.
#[inline(always)]
pub(crate) fn mask_words(width: usize) -> usize {
    width.div_ceil(32).max(1)
}

/// `u32` entries of a row header for a chunk of `width` children.
#[inline(always)]
pub(crate) fn stride(width: usize) -> usize {
    2 + mask_words(width)
}
