//! Options of the wide term of networks: the rows of its settings.

use crate::settings::OfTable;
use xc_train::classifier::WideLearning;
use xc_train::settings::wide::{self, WideSettings};
use xc_train::settings::{Setting, Table, serialised};

#[derive(Clone, Copy, Debug)]
pub(crate) struct OfWide;

impl OfTable for OfWide {
    const TABLE: Table = wide::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        let usual = row.shown(&serialised(&WideSettings::of(Some(WideLearning::default()))));
        Some(usual.unwrap_or_else(|| row.none.to_owned()))
    }
}
