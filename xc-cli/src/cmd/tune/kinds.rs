//! The kinds of models whose options are searched.

use super::spaces::{self, Listed};
use crate::cmd::train::trial::Trial;
use crate::cmd::train::{astra, dense, lns, mach, tree_args, uniform};
use crate::settings::OfTable;

/// A kind of model with options to choose.
pub(super) trait Tuned: Trial + clap::Args + std::fmt::Debug {
    /// As `xc train` calls it.
    const KIND: &'static str;
    /// One line about the command.
    const ABOUT: &'static str;

    /// The options that are searched.
    fn space() -> Listed;
}

impl Tuned for tree_args::Args {
    const KIND: &'static str = "tree";
    const ABOUT: &'static str = "Tune the options of a label tree for a data set";

    fn space() -> Listed {
        spaces::of_table(&tree_args::OfTree::TABLE)
    }
}

impl Tuned for mach::Args {
    const KIND: &'static str = "mach";
    const ABOUT: &'static str = "Tune the options of MACH for a data set";

    fn space() -> Listed {
        spaces::mach()
    }
}

impl Tuned for dense::Args {
    const KIND: &'static str = "dense";
    const ABOUT: &'static str = "Tune the options of a network with one output per label for a data set";

    fn space() -> Listed {
        spaces::dense()
    }
}

impl Tuned for uniform::Args {
    const KIND: &'static str = "uniform";
    const ABOUT: &'static str = "Tune the options of a network with a sparse output layer for a data set";

    fn space() -> Listed {
        spaces::uniform()
    }
}

impl Tuned for lns::Args {
    const KIND: &'static str = "lns";
    const ABOUT: &'static str = "Tune the options of a network with negative sampling for a data set";

    fn space() -> Listed {
        spaces::lns()
    }
}

impl Tuned for astra::Args {
    const KIND: &'static str = "astra";
    const ABOUT: &'static str = "Tune the options of a network with hard and uniform negatives (ASTRA) for a data set";

    fn space() -> Listed {
        spaces::astra()
    }
}
