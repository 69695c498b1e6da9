//! The options that are searched, for each kind of model.
//!
//! Those of trees stand in the table of their settings. Values of networks are around the defaults. What only changes
//! speed or size is not listed.

use xc_train::settings::{self, Table, USUAL};
use xc_train::tune::Scale;

/// An option with its values.
#[derive(Clone, Copy)]
pub(super) struct Searched {
    /// Its name, without the dashes.
    pub(super) option: &'static str,
    /// Its values; that of the default is only a name.
    pub(super) values: &'static [&'static str],
    /// Position of the default, which is not given to the training.
    pub(super) default: usize,
    pub(super) scale: Scale,
    pub(super) of: Of,
    /// Why it is worth a trial.
    pub(super) why: &'static str,
}

/// Which instances an option is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    All,
    Text,
    Features,
}

/// Everything that is searched for a kind.
pub(super) struct Listed {
    pub(super) options: Vec<Searched>,
    /// Changes that often help, each a trial of its own before others are drawn.
    pub(super) starts: &'static [&'static [(&'static str, &'static str)]],
}

/// The rows of a table that are searched, and what is searched of text and features.
pub(super) fn of_table(table: &Table) -> Listed {
    let own = table.rows.iter().filter_map(|row| {
        let settings::Searched { values, default, scale, why } = row.searched?;
        Some(Searched { option: row.name, values, default, scale, of: Of::All, why })
    });
    Listed { options: own.chain([NGRAMS, CHARS, MIN_DF, TFIDF]).collect(), starts: table.starts }
}

/// An option of any instances whose default follows from the data, and comes first.
const fn usual(option: &'static str, values: &'static [&'static str], why: &'static str) -> Searched {
    Searched { option, values, default: 0, scale: Scale::Named, of: Of::All, why }
}

const NGRAMS: Searched = Searched {
    option: "text.ngrams",
    values: &["1", "2"],
    default: 0,
    scale: Scale::Ordered,
    of: Of::Text,
    why: "pairs of words tell apart what single words do not",
};

const CHARS: Searched = Searched {
    option: "text.chars",
    values: &["none", "3-4", "3-5"],
    default: 0,
    scale: Scale::Ordered,
    of: Of::Text,
    why: "parts of words join inflections, misspellings and names",
};

const MIN_DF: Searched = Searched {
    option: "text.min-df",
    values: &["1", "2", "3", "5"],
    default: 1,
    scale: Scale::Ordered,
    of: Of::Text,
    why: "terms of one text help where texts are few, and are noise where they are many",
};

const TFIDF: Searched = Searched {
    option: "tfidf",
    values: &["false", "true"],
    default: 0,
    scale: Scale::Named,
    of: Of::Features,
    why: "rare features tell more, unless they are weighted already",
};

const WIDTHS: Searched = usual(
    "network.widths",
    &[USUAL, "128", "256", "512", "1024"],
    "small data sets need wide embeddings, very many labels narrow ones",
);

const INIT: Searched = usual("network.init", &[USUAL, "random", "lsa"], "lsa suits long texts");

const ACTIVATION: Searched = usual(
    "network.activation",
    &[USUAL, "relu", "identity"],
    "many labels want no ReLU after the embeddings, nor does lsa",
);

const DROPOUT: Searched = usual(
    "network.dropout",
    &[USUAL, "0", "0.1", "0.3", "0.5"],
    "few epochs over many labels want none, many epochs more",
);

const LOSS: Searched = usual(
    "loss",
    &[USUAL, "bce", "squared-hinge", "softmax"],
    "the squared hinge leaves labels alone that are right by a margin",
);

const EPOCHS: Searched =
    usual("epochs", &[USUAL, "3", "5", "10", "20", "40"], "small data sets need more; too many overfit rare labels");

const RATE: Searched = usual(
    "optimizer.rate",
    &[USUAL, "0.001", "0.002", "0.005", "0.01", "0.02"],
    "goes with the width, the batch and the number of epochs",
);

const BATCH: Searched = usual("batch", &[USUAL, "32", "64", "128", "512"], "small batches make more steps");

const REPETITIONS: Searched =
    usual("repetitions", &[USUAL, "4", "16", "32"], "more tell labels apart better, at a cost that grows with them");

const BUCKETS: Searched =
    usual("buckets", &[USUAL, "250", "500", "1000", "2000", "4000"], "more make each repetition better");

const DECODER: Searched = Searched {
    option: "decoder",
    values: &["median", "mean"],
    default: 0,
    scale: Scale::Named,
    of: Of::All,
    why: "many buckets hold few frequent labels that would spoil a mean",
};

const INTERMEDIATE: Searched =
    usual("network.intermediate", &[USUAL, "1024", "4096", "16384", "none"], "a wider layer tells more labels apart");

const FAN_IN: Searched = Searched {
    option: "head.fan-in",
    values: &["16", "32", "64", "128"],
    default: 1,
    scale: Scale::Ordered,
    of: Of::All,
    why: "more connections fit better, at a cost that grows with them",
};

const HARD: Searched = Searched {
    option: "negatives.hard",
    values: &["5", "10", "20", "40"],
    default: 1,
    scale: Scale::Ordered,
    of: Of::All,
    why: "a step corrects more of the labels that are confused",
};

const UNIFORM_LABELS: Searched =
    usual("negatives.uniform", &[USUAL, "500", "2000", "8000"], "they stand for all other labels");

const SAMPLER: Searched =
    usual("sampler", &[USUAL, "midx", "log-uniform", "frequency", "in-batch", "all"], "which labels a step scores");

/// Changes that often help networks, those of texts first.
const NETWORK_STARTS: [&[(&str, &str)]; 6] = [
    &[("text.ngrams", "2")],
    &[("network.activation", "identity"), ("network.dropout", "0")],
    &[("epochs", "20")],
    &[("network.widths", "1024"), ("optimizer.rate", "0.002")],
    &[("tfidf", "true")],
    &[("optimizer.rate", "0.005")],
];

/// What is searched of every network.
const NETWORK: [Searched; 12] =
    [WIDTHS, INIT, ACTIVATION, DROPOUT, LOSS, EPOCHS, RATE, BATCH, NGRAMS, CHARS, MIN_DF, TFIDF];

/// Options of a kind's own, and those of every network.
fn of_network(own: &[Searched]) -> Listed {
    Listed { options: [own, &NETWORK].concat(), starts: &NETWORK_STARTS }
}

pub(super) fn mach() -> Listed {
    of_network(&[REPETITIONS, BUCKETS, DECODER])
}

pub(super) fn dense() -> Listed {
    of_network(&[])
}

pub(super) fn uniform() -> Listed {
    of_network(&[INTERMEDIATE, FAN_IN])
}

pub(super) fn lns() -> Listed {
    of_network(&[SAMPLER, UNIFORM_LABELS])
}

pub(super) fn astra() -> Listed {
    of_network(&[HARD, UNIFORM_LABELS])
}
