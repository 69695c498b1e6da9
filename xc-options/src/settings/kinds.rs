//! The settings of each kind of model: the tables that it has, and rows that say something else of it than of others.

use super::network::{EMBEDDING_RATE, INPUT_DROPOUT, LOSS, WIDTHS};
use super::{
    Setting, Table, astra, candidates, data, input, mach, network, text, transformer, tree, uniform, wide, words,
};
use xc_nn::encoder::transformer::IS_BUILT;

/// Kinds of models that can be trained.
pub const KINDS: [&str; 7] = ["tree", "mach", "dense", "uniform", "lns", "astra", "skipgram"];

/// The settings of what is no kind of model: `index`, `blend`, `calibrate`, `search` (of a query), `convert`, `embed`, `evaluate`.
pub fn command_table(command: &str) -> Option<Table> {
    match command {
        "index" => Some(super::index::TABLE),
        "blend" => Some(super::fitted::BLEND),
        "calibrate" => Some(super::fitted::CALIBRATION),
        "search" => Some(super::search::OF_QUERY),
        "convert" => Some(super::change::TABLE),
        "evaluate" => Some(super::judge::TABLE),
        "embed" => Some(super::embed::TABLE),
        _ => None,
    }
}

/// The settings of a kind, table by table; none for a kind that is not known. What it says of one in other words stands in
/// [`rows`].
pub fn tables(kind: &str) -> Vec<Table> {
    tables_of(kind, Build::This)
}

/// Which settings are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Those that this build has.
    This,
    /// Those of a build with every feature.
    Whole,
}

impl Build {
    /// Whether it has transformers.
    pub fn has_transformers(self) -> bool {
        IS_BUILT || self == Self::Whole
    }
}

fn tables_of(kind: &str, build: Build) -> Vec<Table> {
    let own: &[Table] = match kind {
        "tree" => &[tree::OWN, tree::TABLE],
        "mach" => &[mach::TABLE, network::TABLE],
        "dense" => &[wide::TABLE, network::TABLE],
        "uniform" => &[uniform::TABLE, wide::TABLE, network::TABLE],
        "lns" => &[candidates::TABLE, wide::TABLE, network::TABLE],
        "astra" => &[astra::TABLE, wide::TABLE, network::TABLE],
        "skipgram" => return vec![candidates::TABLE, network::TABLE, words::TABLE, text::TOKENS],
        _ => return Vec::new(),
    };
    let of_tokens = of_transformer(kind).filter(|_| build.has_transformers());
    of_tokens
        .into_iter()
        .chain(own.iter().copied())
        .chain([text::TABLE, text::TOKENS, data::TABLE, input::TABLE])
        .collect()
}

/// The settings of a transformer that a kind reads texts with.
fn of_transformer(kind: &str) -> Option<Table> {
    match kind {
        "dense" | "uniform" | "lns" | "astra" => Some(transformer::TABLE),
        "mach" => Some(transformer::FROZEN),
        _ => None,
    }
}

/// The settings that a kind has a use for, in the order of its help, as it takes them.
pub fn rows(kind: &str) -> Vec<&'static Setting> {
    rows_of(kind, Build::This)
}

/// The same of any build.
pub fn rows_of(kind: &str, build: Build) -> Vec<&'static Setting> {
    let mut tables = tables_of(kind, build);
    // Searches draw from tables in the order of these; for a reader a transformer stands below the network.
    let has_encoder = tables.first().and_then(|table| table.row("encoder"));
    if let (Some(_), Some(at)) = (has_encoder, tables.iter().position(|table| table.row("epochs").is_some())) {
        tables[..at].rotate_left(1);
    }
    let all = tables.iter().flat_map(|table| table.rows).filter(|row| !unused(kind).contains(&row.name));
    all.map(|row| own(kind).iter().find(|own| own.name == row.name).unwrap_or(row)).collect()
}

/// Settings of shared tables that a kind has no use for, and those that it has in other builds: chosen here they are refused
/// with why that is so.
pub fn without_use(kind: &str) -> Vec<&'static Setting> {
    let absent = of_transformer(kind).filter(|_| !IS_BUILT).map_or(&[][..], |table| table.rows);
    let tables = tables(kind);
    let unused = tables.iter().flat_map(|table| table.rows).filter(|row| unused(kind).contains(&row.name));
    unused.chain(absent).collect()
}

/// The row of a setting of a kind, whether it has a use for it or not.
pub fn row(kind: &str, name: &str) -> Option<&'static Setting> {
    let named = |table: &Table| table.row(name);
    let own = own(kind).iter().find(|row| row.name == name);
    own.or_else(|| tables_of(kind, Build::Whole).iter().find_map(named))
}

/// What a setting of a kind belongs to, as it is typed: `--sampler frequency`.
pub fn needs(kind: &str, row: &Setting) -> Option<String> {
    tables_of(kind, Build::Whole).iter().find(|table| table.row(row.name).is_some())?.needs(row)
}

/// Settings of shared tables that a kind has no use for.
fn unused(kind: &str) -> &'static [&'static str] {
    match kind {
        "skipgram" => &["network.init", "network.activation", "network.dropout"],
        _ => &[],
    }
}

/// Losses of a network whose steps score all labels, or whose lists have no probabilities.
const LOSSES: &[&str] = &["softmax", "bce", "squared-hinge"];
const LABELS: Setting = LOSS.names_alone(LOSSES);
const BUCKETS: Setting =
    LOSS.names_alone(LOSSES).help("softmax (one true bucket), bce or squared-hinge (each bucket true or false)");

/// Rows of a kind in place of those of shared tables.
fn own(kind: &str) -> &'static [Setting] {
    match kind {
        "mach" => const { &[BUCKETS] },
        "dense" | "astra" => const { &[LABELS] },
        "lns" => {
            const {
                &[LOSS.help(
                    "softmax (one true label), bce or squared-hinge (each label true or false), nce (true labels against \
                     drawn ones; with --sampler uniform, log-uniform, frequency or midx)",
                )]
            }
        }
        "uniform" => {
            const {
                &[
                    LOSS.names_alone(LOSSES)
                        .help("squared-hinge or bce (each label true or false), softmax (one true label)"),
                    WIDTHS.help(
                        "Hidden layer sizes below the intermediate one, input side first, e.g. 512,512: for sparse \
                         features the first is the width of their embeddings",
                    ),
                ]
            }
        }
        "skipgram" => {
            const {
                &[
                    LOSS.help(
                        "softmax, bce or squared-hinge (each word is near it or not), nce (true words against drawn \
                         ones; with --sampler uniform, log-uniform, frequency or midx)",
                    ),
                    WIDTHS.help("Width of a vector"),
                    EMBEDDING_RATE
                        .help("Learning rate of the vectors, as a share of the learning rate; 0: they stay fixed"),
                    INPUT_DROPOUT.help("Dropout probability of the values of a vector"),
                    candidates::PRESET.names_alone(&["text8"]).help(
                        "Settings that a paper used for a text: batch, rate, tables; other options override them",
                    ),
                ]
            }
        }
        _ => &[],
    }
}
