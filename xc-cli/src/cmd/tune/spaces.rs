//! The options that are searched, for each kind of model.
//!
//! Values of trees were chosen so that each has been the best one for some set of data, or is a step
//! on the way there. Those of networks are around the defaults. What only changes speed or size is
//! not listed.

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
#[derive(Clone, Copy)]
pub(super) struct Listed {
    pub(super) options: &'static [Searched],
    /// Changes that often help, each a trial of its own before others are drawn.
    pub(super) starts: &'static [&'static [(&'static str, &'static str)]],
}

/// How the default of an option is called whose value depends on others.
const USUAL: &str = "usual";

pub(super) const TREE: Listed = Listed {
    options: &[
        Searched {
            option: "linear.loss",
            values: &["squared-hinge", "logistic"],
            default: 0,
            scale: Scale::Named,
            of: Of::All,
            why: "the logistic loss ranks rare labels better where rows have many labels",
        },
        Searched {
            option: "linear.cost",
            values: &["0.1", "0.3", "0.5", USUAL, "2", "3", "10", "30"],
            default: 3,
            scale: Scale::Ordered,
            of: Of::All,
            why: "few rows and noisy labels want less, many rows of short text want more",
        },
        Searched {
            option: "linear.prune-below",
            values: &["0.01", "0.03", USUAL, "0.2"],
            default: 2,
            scale: Scale::Ordered,
            of: Of::All,
            why: "small weights are what a small cost or the logistic loss consists of",
        },
        Searched {
            option: "linear.positive-cost",
            values: &["0.5", "1", "2", "4"],
            default: 1,
            scale: Scale::Ordered,
            of: Of::All,
            why: "rankers of rare labels see few positives among many negatives",
        },
        Searched {
            option: "linear.bias",
            values: &["0", "1"],
            default: 1,
            scale: Scale::Ordered,
            of: Of::All,
            why: "without it rankers go by the features alone",
        },
        Searched {
            option: "trees",
            values: &["3", "5", "10"],
            default: 0,
            scale: Scale::Ordered,
            of: Of::All,
            why: "averages more clusterings",
        },
        Searched {
            option: "cluster.max-leaf",
            values: &["20", "50", "100", "300", "1000"],
            default: 2,
            scale: Scale::Ordered,
            of: Of::All,
            why: "more labels are set against one another; with few labels there is one level, without a search",
        },
        Searched {
            option: "tree.branching",
            values: &["2", "8", "16", "32", "100"],
            default: 2,
            scale: Scale::Ordered,
            of: Of::All,
            why: "fewer levels lose fewer labels, more levels share more rows",
        },
        Searched {
            option: "cluster.method",
            values: &["balanced", "unbalanced"],
            default: 0,
            scale: Scale::Named,
            of: Of::All,
            why: "groups of labels may have very different sizes",
        },
        Searched {
            option: "negatives",
            values: &["teacher-forced", "matcher-aware"],
            default: 0,
            scale: Scale::Named,
            of: Of::All,
            why: "rankers see rows that the levels above send to them by mistake",
        },
        Searched {
            option: "beam",
            values: &["10", "20", "50"],
            default: 0,
            scale: Scale::Ordered,
            of: Of::All,
            why: "fewer labels are lost on the way down",
        },
        Searched {
            option: "post-processor",
            values: &[USUAL, "sigmoid", "l1-hinge", "l2-hinge", "l4-hinge", "l6-hinge"],
            default: 0,
            scale: Scale::Named,
            of: Of::All,
            why: "how much an upper level counts compared with the label's own ranker",
        },
        NGRAMS,
        CHARS,
        MIN_DF,
        TFIDF,
    ],
    starts: &[
        &[("linear.cost", "0.3")],
        &[("linear.cost", "3")],
        &[("text.ngrams", "2")],
        &[("linear.loss", "logistic")],
        &[("tfidf", "true")],
        &[("linear.cost", "0.3"), ("cluster.max-leaf", "1000"), ("trees", "5")],
        &[("linear.loss", "logistic"), ("text.ngrams", "2"), ("tfidf", "true"), ("trees", "5")],
        &[("linear.cost", "3"), ("trees", "5"), ("beam", "20")],
    ],
};

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
    "few rows want wide embeddings, very many labels narrow ones",
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

const EPOCHS: Searched = usual(
    "epochs",
    &[USUAL, "3", "5", "10", "20", "40"],
    "few rows want more, rare labels are learned by heart in too many",
);

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
    option: "hard",
    values: &["5", "10", "20", "40"],
    default: 1,
    scale: Scale::Ordered,
    of: Of::All,
    why: "a step corrects more of the labels that are confused",
};

const UNIFORM_LABELS: Searched = usual("uniform", &[USUAL, "500", "2000", "8000"], "they stand for all other labels");

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

pub(super) const MACH: Listed = Listed {
    options: &[
        REPETITIONS,
        BUCKETS,
        DECODER,
        WIDTHS,
        INIT,
        ACTIVATION,
        DROPOUT,
        LOSS,
        EPOCHS,
        RATE,
        BATCH,
        NGRAMS,
        CHARS,
        MIN_DF,
        TFIDF,
    ],
    starts: &NETWORK_STARTS,
};

pub(super) const DENSE: Listed = Listed {
    options: &[WIDTHS, INIT, ACTIVATION, DROPOUT, LOSS, EPOCHS, RATE, BATCH, NGRAMS, CHARS, MIN_DF, TFIDF],
    starts: &NETWORK_STARTS,
};

pub(super) const UNIFORM: Listed = Listed {
    options: &[
        INTERMEDIATE,
        FAN_IN,
        WIDTHS,
        INIT,
        ACTIVATION,
        DROPOUT,
        LOSS,
        EPOCHS,
        RATE,
        BATCH,
        NGRAMS,
        CHARS,
        MIN_DF,
        TFIDF,
    ],
    starts: &NETWORK_STARTS,
};

pub(super) const LNS: Listed = Listed {
    options: &[
        SAMPLER,
        UNIFORM_LABELS,
        WIDTHS,
        INIT,
        ACTIVATION,
        DROPOUT,
        LOSS,
        EPOCHS,
        RATE,
        BATCH,
        NGRAMS,
        CHARS,
        MIN_DF,
        TFIDF,
    ],
    starts: &NETWORK_STARTS,
};

pub(super) const ASTRA: Listed = Listed {
    options: &[
        HARD,
        UNIFORM_LABELS,
        WIDTHS,
        INIT,
        ACTIVATION,
        DROPOUT,
        LOSS,
        EPOCHS,
        RATE,
        BATCH,
        NGRAMS,
        CHARS,
        MIN_DF,
        TFIDF,
    ],
    starts: &NETWORK_STARTS,
};
