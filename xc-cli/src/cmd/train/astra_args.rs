//! Options of ASTRA: the rows of its settings.

use crate::settings::OfTable;
use xc_train::settings::astra::{self, AstraSettings};
use xc_train::settings::{Setting, Table, serialised};

#[derive(Clone, Copy, Debug)]
pub(crate) struct OfAstra;

impl OfTable for OfAstra {
    const TABLE: Table = astra::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        row.shown(&serialised(&AstraSettings::default()))
    }
}
