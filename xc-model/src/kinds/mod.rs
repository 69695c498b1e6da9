//! The kinds of models: what each says of itself, and how it opens and answers.

pub(crate) mod blend;
pub(crate) mod classifier;
pub(crate) mod mach;
mod skipgram;
pub(crate) mod tree;

use crate::classifier::{ASTRA, DENSE, LNS, UNIFORM};
use crate::kind::Kind;

/// Every kind of model of this library. A further kind of classifier is a name in the list of those, any other an adapter in
/// a file of its own and an entry here.
pub(crate) static STANDARD: [Kind; 8] = [
    tree::TREE,
    classifier::kind(DENSE),
    classifier::kind(UNIFORM),
    classifier::kind(LNS),
    classifier::kind(ASTRA),
    mach::MACH,
    skipgram::SKIPGRAM,
    blend::BLEND,
];
