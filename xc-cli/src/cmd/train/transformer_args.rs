//! Options of a transformer below a network, or before it: the rows of its settings.

use crate::settings::OfTable;
use xc_train::settings::transformer::{self, TransformerSettings};
use xc_train::settings::{Setting, Table, serialised};

#[derive(Clone, Copy, Debug)]
pub(crate) struct OfTransformer;

impl OfTable for OfTransformer {
    const TABLE: Table = transformer::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        usual(row)
    }

    fn adapted(option: clap::Arg) -> clap::Arg {
        adapted(option)
    }
}

/// Those of kinds that train no transformer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfFrozen;

impl OfTable for OfFrozen {
    const TABLE: Table = transformer::FROZEN;

    fn usual(row: &Setting) -> Option<String> {
        usual(row)
    }

    fn adapted(option: clap::Arg) -> clap::Arg {
        adapted(option)
    }
}

fn usual(row: &Setting) -> Option<String> {
    row.shown(&serialised(&TransformerSettings::default()))
}

/// A build without transformers refuses them in a line that says so.
fn adapted(option: clap::Arg) -> clap::Arg {
    option.hide(cfg!(not(feature = "transformer")))
}
