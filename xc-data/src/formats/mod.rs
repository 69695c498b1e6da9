//! The formats: each module reads and writes one.

pub(crate) mod csv;
pub(crate) mod fasttext;
pub(crate) mod jsonl;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod svmlight;
pub(crate) mod vecs;
pub(crate) mod xc_text;
