//! Graphs over made-up rows: answers, changes, files, extremes.

mod answers;
mod bytes;
mod cells;
mod changes;
mod extremes;
mod files;
mod made;
mod proofs;
