//! Options of ASTRA: the rows of its settings.

use crate::settings::OfTable;
use xc_options::settings::{Setting, Table, astra};
use xc_train::astra::AstraParams;

#[derive(Clone, Copy, Debug)]
pub(crate) struct OfAstra;

impl OfTable for OfAstra {
    const TABLE: Table = astra::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        match row.name {
            "sampler" | "retrieval" => row.shown_in(&AstraParams::default()),
            "head.precision" => Some("f32".to_owned()),
            // Help says what it follows from.
            _ => None,
        }
    }
}
