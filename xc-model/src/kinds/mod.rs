//! The standard kinds of models: how each opens, answers and describes itself.

pub(crate) mod blend;
pub(crate) mod classifier;
pub(crate) mod mach;
mod names;
mod skipgram;
pub(crate) mod tree;

use crate::classifier::{ASTRA, DENSE, LNS, UNIFORM};
use crate::kind::Kind;

/// Every standard kind. A further kind of classifier is a name in `classifier::KINDS` and an entry here; any other kind
/// is an adapter in a file of its own and an entry here.
pub(crate) static STANDARD: [Kind; 9] = [
    tree::TREE,
    classifier::kind(DENSE),
    classifier::kind(UNIFORM),
    classifier::kind(LNS),
    classifier::kind(ASTRA),
    mach::MACH,
    skipgram::SKIPGRAM,
    names::NAMES,
    blend::BLEND,
];
