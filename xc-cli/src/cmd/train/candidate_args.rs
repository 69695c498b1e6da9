//! Options of a head whose steps score some labels, which kinds of networks share: the rows of their settings.

use crate::settings::OfTable;
use xc_options::settings::candidates;
use xc_options::settings::{Setting, Table};

#[derive(Clone, Copy, Debug)]
pub(crate) struct OfCandidates;

impl OfTable for OfCandidates {
    const TABLE: Table = candidates::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        (row.name == "head.precision").then(|| "f32".to_owned())
    }
}
