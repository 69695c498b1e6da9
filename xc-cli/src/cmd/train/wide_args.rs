//! Options of the wide term of networks: the rows of its settings.

use crate::settings::OfTable;
use xc_model::classifier::InputKind;
use xc_options::settings::{Setting, Table, wide};
use xc_train::network::NetworkParams;
use xc_train::preset;

#[derive(Clone, Copy, Debug)]
pub(crate) struct OfWide;

impl OfTable for OfWide {
    const TABLE: Table = wide::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        let usual = row.shown_in(&NetworkParams::of(&preset::dense(), InputKind::Sparse));
        Some(usual.unwrap_or_else(|| row.none.to_owned()))
    }
}
