//! Made-up data with the shape of real text classification: nothing is stored but the parameters.
//!
//! Labels are the leaves of a hidden tree. Each node of the tree owns words, and an instance draws
//! its words from the nodes on the paths of its labels and from a background in which word
//! frequencies follow a power law. So siblings share words, ancestors lend words to all their
//! labels, and a few words are everywhere.
//!
//! ```text
//!   root ─┬─ node ─┬─ label 7   "tamo keluri Bovasen"       instance 12   labels 7, 40
//!         │        └─ label 2                               words         background, root, node, label 7, ...
//!         └─ node ─── label 40
//! ```
//!
//! Everything is a function of (seed, number): the words of a node, the spelling of a word, the
//! labels and words of an instance. Instance `i` can be made alone, in any order, on any thread;
//! memory does not grow with the number of instances or labels.

mod hash;
mod instance;
mod names;
mod shape;
mod tree;

pub(crate) use instance::{Generator, Instance};
pub(crate) use shape::{PRESETS, Shape};
pub(crate) use tree::{Untrained, UntrainedError, UntrainedParams};
