//! Options of a transformer below a network, or before it: the rows of its settings.

use crate::settings::OfTable;
use xc_options::settings::{Setting, Table, transformer};
use xc_train::network::TextEncoder;

/// `TRAINS`: whether the kind trains one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfTransformer<const TRAINS: bool>;

impl<const TRAINS: bool> OfTable for OfTransformer<TRAINS> {
    const TABLE: Table = if TRAINS { transformer::TABLE } else { transformer::FROZEN };

    fn usual(row: &Setting) -> Option<String> {
        row.shown_in(&TextEncoder::default())
    }

    /// A build without transformers refuses them in a line that says so.
    fn adapted(option: clap::Arg) -> clap::Arg {
        option.hide(cfg!(not(feature = "transformer")))
    }
}
