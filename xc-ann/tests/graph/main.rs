//! Graphs over made-up rows: answers, changes, files.

mod answers;
mod bytes;
mod cells;
mod changes;
mod files;
mod made;
mod proofs;
