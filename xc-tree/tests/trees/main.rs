//! Trees: trained in one piece and in parts, saved, and searched.

mod kept;
mod made;
mod parts;
mod predict;
#[cfg(feature = "import")]
mod scale;
mod training;
