//! Networks with a wide term: what their scores are, what their folders hold.

mod definition;
mod file;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;
use xc_model::Model;
use xc_model::{Changes, OpenOptions, OwnedRows, QueryOptions, Rows};
use xc_options::Training;
use xc_options::data::Source;
use xc_sparse::rank::Scored;
use xc_sparse::{CsrMatrix, LabelRows};
use xc_train::fit::{Arrays, Context, Silent};

const N_LABELS: usize = 60;
const N_FEATURES: usize = 96;
/// Labels that are ranked again, where not all are.
const AGAIN: usize = 10;

/// A feature for each label, and some that say little.
fn rows(n: usize) -> (CsrMatrix, LabelRows) {
    let (mut indptr, mut features, mut values, mut lists) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let labels = [(i * 7) % N_LABELS, (i * 11 + i / N_LABELS) % N_LABELS];
        let mut row: Vec<usize> = labels.to_vec();
        row.extend((0..4).map(|at| N_LABELS + (i * (at + 3) + at * at) % (N_FEATURES - N_LABELS)));
        row.sort_unstable();
        row.dedup();
        features.extend(row.iter().map(|&feature| feature as u32));
        values.extend(row.iter().map(|&feature| 0.5 + ((feature * 5 + i) % 7) as f32 / 7.0));
        indptr.push(features.len());
        lists.push(labels.map(|label| label as u32));
    }
    (
        CsrMatrix::from_checked((n, N_FEATURES), indptr, features, values),
        LabelRows::from_lists(lists, N_LABELS).unwrap(),
    )
}

/// The features as words.
fn texts(rows: &CsrMatrix) -> Vec<String> {
    let text = |row: xc_sparse::SparseRow<'_>| {
        let words: Vec<String> = row.indices().iter().map(|feature| format!("word{feature}")).collect();
        words.join(" ")
    };
    rows.view().iter().map(text).collect()
}

/// A name and a value of each.
type Settings = &'static [(&'static str, &'static str)];

/// Name, kind and settings of each model; all but that of text over rows.
const MODELS: [(&str, &str, Settings); 7] = [
    ("bce", "lns", &[("wide.labels", "10")]),
    ("softmax", "lns", &[("loss", "softmax"), ("wide.labels", "10")]),
    ("astra", "astra", &[("negatives.hard", "2"), ("wide.labels", "10")]),
    ("dense", "dense", &[("wide", "on"), ("wide.labels", "10"), ("wide.precision", "bf16")]),
    (
        "hinge",
        "uniform",
        &[("wide", "on"), ("wide.labels", "10"), ("network.intermediate", "32"), ("head.fan-in", "6")],
    ),
    ("all", "lns", &[]),
    ("text", "lns", &[("wide.labels", "10"), ("text.min-df", "1")]),
];

struct Trained {
    _folder: TempDir,
    at: PathBuf,
}

impl Trained {
    fn place(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    /// With logits as scores.
    fn raw(&self, name: &str) -> Model {
        raw(&self.place(name))
    }

    /// Its network, with logits as scores.
    fn network(&self, name: &str) -> Model {
        self.raw(&format!("{name}.network"))
    }
}

fn raw(folder: &Path) -> Model {
    let options = OpenOptions { post_processor: Some("noop".to_owned()), ..OpenOptions::default() };
    Model::open_with(folder, &options).unwrap()
}

/// All models, and their networks alone.
static TRAINED: LazyLock<Trained> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let trained = Trained { at: folder.path().to_owned(), _folder: folder };
    let (rows, labels) = rows(240);
    for (name, kind, settings) in MODELS {
        let source = match name {
            "text" => Source::from(Arrays::new(OwnedRows::Texts(texts(&rows)), labels.clone())),
            _ => (rows.clone(), labels.clone()).into(),
        };
        let mut training = Training::new(kind, source, trained.place(name)).unwrap();
        let usual = [("epochs", "6"), ("network.widths", "12"), ("batch", "32")];
        for (setting, value) in usual.iter().chain(settings) {
            training.set(setting, value).unwrap();
        }
        training.run(&Context::new(&Silent).with_threads(2)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let model = Model::open(trained.place(name)).unwrap();
        let changes = Changes { without_wide: true, ..Changes::default() };
        model.change(&changes).unwrap().save(trained.place(&format!("{name}.network"))).unwrap();
    }
    trained
});

/// Queries of a model of this name: like those that were learned from, and others without anything known.
fn queries(name: &str) -> OwnedRows {
    let (rows, _) = rows(40);
    if name == "text" {
        let mut texts = texts(&rows);
        texts.extend(["word3 unknown word70", "word61"].map(str::to_owned));
        return OwnedRows::Texts(texts);
    }
    let (mut indptr, mut features, mut values) = rows.into_parts();
    for row in [&[][..], &[(5, 2.0)], &[(1, 0.0), (90, 0.1)]] {
        features.extend(row.iter().map(|(feature, _)| *feature));
        values.extend(row.iter().map(|(_, value)| *value));
        indptr.push(features.len());
    }
    OwnedRows::Sparse(CsrMatrix::from_checked((indptr.len() - 1, N_FEATURES), indptr, features, values))
}

fn ask(model: &Model, queries: Rows<'_>, options: &QueryOptions<'_>) -> Vec<Vec<Scored>> {
    let answers = model.predict_batch(queries, options).unwrap();
    answers.ranked.iter().map(<[Scored]>::to_vec).collect()
}
