//! One at a time or in batches, from some labels or all: the same answers.

use crate::folders::{self, Front, N_LABELS, WIDTH};
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;
use xc_buffer::DType;
use xc_dense::DenseRows;
use xc_model::blend::{self, RuleKind};
use xc_model::classifier;
use xc_model::{Answer, Answers, Candidates, Excluded, InputKind, Model, QueryError, QueryOptions, Row, Rows, Scratch};
use xc_nn::Loss;
use xc_sparse::rank::{RankedBatch, Scored, rank_order};
use xc_sparse::{CsrMatrix, LabelRows};

/// A model of each kind and input.
pub(crate) static MODELS: LazyLock<(TempDir, Vec<Model>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    folders::tree(&at("tree"), Front::Plain, 1);
    folders::tree(&at("tree-text"), Front::Text, 3);
    folders::tree(&at("tree-weights"), Front::Weights, 1);
    folders::dense(&at("dense"), Front::Plain, Loss::SquaredHinge);
    folders::dense(&at("dense-text"), Front::Text, Loss::Softmax);
    folders::mach(&at("mach"), Front::Plain);
    folders::mach(&at("mach-text"), Front::Text);
    folders::uniform(&at("uniform"), classifier::InputKind::Sparse, Loss::SquaredHinge);
    folders::uniform(&at("uniform-dense"), classifier::InputKind::Dense, Loss::Bce);
    folders::lns(&at("lns"), Front::Plain, Loss::Bce, DType::Bf16);
    folders::lns(&at("lns-text"), Front::Text, Loss::Softmax, DType::F32);
    let blend = |name: &str, members: &[&str], rule| {
        let members: Vec<_> = members.iter().map(|name| at(name)).collect();
        folders::blend(&at(name), &members.iter().map(|path| &**path).collect::<Vec<_>>(), rule);
    };
    blend("blend", &["tree", "dense", "tree-weights", "uniform"], RuleKind::Net);
    blend("blend-logistic", &["mach", "tree"], RuleKind::Logistic);
    blend("blend-text", &["tree-text", "lns-text", "mach-text"], RuleKind::ReciprocalRanks);
    let names = ["tree", "tree-text", "tree-weights", "dense", "dense-text", "mach", "mach-text", "uniform"];
    let others = ["uniform-dense", "lns", "lns-text", "blend", "blend-logistic", "blend-text"];
    let models = names.iter().chain(&others).map(|name| Model::open(at(name)).unwrap()).collect();
    (folder, models)
});

/// Batches are shared by the threads of a pool alone.
static POOL: LazyLock<ThreadPool> = LazyLock::new(|| ThreadPoolBuilder::new().num_threads(3).build().unwrap());

/// Queries that suit any model.
struct Asked {
    texts: Vec<String>,
    rows: CsrMatrix,
    vectors: Vec<f32>,
}

impl Asked {
    fn new(n: usize) -> Self {
        let texts = folders::texts().into_iter().take(n).collect();
        let vectors = (0..n * WIDTH).map(|i| (i * 37 % 17) as f32 / 8.0 - 1.0).collect();
        Self { texts, rows: folders::rows(n), vectors }
    }

    fn with<T>(&self, model: &Model, work: impl FnOnce(Rows<'_>) -> T) -> T {
        let texts: Vec<&str> = self.texts.iter().map(|t| &**t).collect();
        match model.describe().takes {
            InputKind::Text => work(Rows::texts(&texts)),
            InputKind::Sparse => work(Rows::Sparse(self.rows.view())),
            InputKind::Dense => work(Rows::Dense(DenseRows::new(&self.vectors, WIDTH))),
            InputKind::Tokens => panic!("a model of tokens without texts"),
        }
    }
}

/// Answers one query after the other.
fn one_by_one(model: &Model, queries: Rows<'_>, options: &QueryOptions<'_>) -> Answers {
    let (mut scratch, mut answer, mut answers) = (Scratch::default(), Answer::default(), Answers::default());
    for i in 0..queries.len() {
        let mut options = *options;
        if let Candidates::ByQuery { rows, first } = options.candidates {
            options.candidates = Candidates::ByQuery { rows, first: first + i };
        }
        if let Excluded::ByQuery { rows, first } = options.exclude {
            options.exclude = Excluded::ByQuery { rows, first: first + i };
        }
        model.predict(&queries.row(i), &options, &mut scratch, &mut answer).unwrap();
        answers.ranked.push_row(&answer.labels);
        answers.certificates.extend(answer.certificate);
        answers.known_terms.extend(answer.known_terms);
    }
    answers
}

fn sorted(row: &[Scored]) -> Vec<Scored> {
    let mut row = row.to_vec();
    row.sort_by(|&a, &b| rank_order(a, b));
    row
}

fn labels_of(ranked: &RankedBatch) -> Vec<Vec<u32>> {
    ranked.iter().map(|row| row.iter().map(|s| s.label).collect()).collect()
}

/// Of every query another number of labels.
fn exclude_by_query(labels: &[u32], n: usize) -> Vec<Vec<u32>> {
    (0..n).map(|i| labels.iter().take(i % 7).map(|&label| (label + i as u32) % N_LABELS as u32).collect()).collect()
}

#[test]
fn a_slice_of_queries_is_answered_as_they_are() {
    let (rows, options) = (folders::rows(12), QueryOptions::top(5));
    let ask = |model: &Model, rows: xc_sparse::CsrView<'_>| {
        POOL.install(|| model.predict_batch(Rows::Sparse(rows), &options)).unwrap().ranked
    };
    for model in MODELS.1.iter().filter(|model| model.describe().takes == InputKind::Sparse) {
        let all = ask(model, rows.view());
        for (from, to) in [(0, 12), (3, 9), (11, 12), (5, 5)] {
            let slice = rows.slice(from..to);
            for some in [ask(model, slice), ask(model, slice.to_owned().view())] {
                assert!(some.iter().eq((from..to).map(|i| all.row(i))), "{} {from} to {to}", model.describe().kind);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn one_query_after_the_other_is_answered_as_in_a_batch(
        n in 1usize..40,
        top_k in 0usize..50,
        exclude in prop::collection::vec(0u32..N_LABELS as u32, 0..6),
        some in prop::collection::vec(0u32..N_LABELS as u32, 1..20),
        min_score in prop::option::of(-0.5f32..0.5),
        restrict in 0usize..3,
        by_query: bool,
    ) {
        let asked = Asked::new(n);
        let lists = LabelRows::from_lists((0..n as u32).map(|i| [i % 7, 8 + i % 11, 30]), N_LABELS).unwrap();
        for model in &MODELS.1 {
            let candidates = match restrict {
                0 => Candidates::All,
                1 => Candidates::Labels(&some),
                _ => Candidates::ByQuery { rows: &lists, first: 0 },
            };
            let excluded = LabelRows::from_lists(exclude_by_query(&exclude, n), N_LABELS).unwrap();
            let exclude = match by_query {
                true => Excluded::ByQuery { rows: &excluded, first: 0 },
                false => Excluded::Labels(&exclude),
            };
            let options = QueryOptions { top_k, min_score, exclude, candidates, ..QueryOptions::default() };
            let batch = || asked.with(model, |queries| model.predict_batch(queries, &options).unwrap());
            let one = asked.with(model, |queries| one_by_one(model, queries, &options));
            prop_assert_eq!(&batch(), &one, "{:?}", model.describe());
            let batch = POOL.install(batch);
            prop_assert_eq!(&batch, &one, "{:?}", model.describe());
            for (i, row) in batch.ranked.iter().enumerate() {
                prop_assert!(row.len() <= top_k);
                let without = match exclude {
                    Excluded::Labels(labels) => labels,
                    _ => excluded.row(i),
                };
                prop_assert!(row.iter().all(|s| !without.contains(&s.label)), "excluded labels are answered");
                prop_assert!(row.iter().all(|s| min_score.is_none_or(|min| s.score >= min)));
                let allowed = |label: &u32| match candidates {
                    Candidates::All => true,
                    Candidates::Labels(labels) => labels.contains(label),
                    Candidates::ByQuery { rows, .. } => rows.row(i).contains(label),
                };
                prop_assert!(row.iter().all(|s| allowed(&s.label)));
            }
        }
    }
}

#[test]
fn all_labels_as_candidates_give_the_full_answer() {
    let (asked, all) = (Asked::new(30), (0..N_LABELS as u32).collect::<Vec<_>>());
    for model in &MODELS.1 {
        // A beam that keeps every cluster, where there is one.
        let mut options = QueryOptions::top(7);
        if model.describe().kind == xc_tree::KIND {
            options.search.beam = Some(N_LABELS);
        }
        let restricted = QueryOptions { candidates: Candidates::Labels(&all), ..QueryOptions::top(7) };
        let (full, some) = asked.with(model, |queries| {
            (model.predict_batch(queries, &options).unwrap(), model.predict_batch(queries, &restricted).unwrap())
        });
        assert_eq!(labels_of(&full.ranked), labels_of(&some.ranked), "{:?}", model.describe());
    }
}

#[test]
fn the_order_by_score_is_the_order_of_the_answer() {
    let asked = Asked::new(60);
    for model in &MODELS.1 {
        let answers = asked.with(model, |queries| model.predict_batch(queries, &QueryOptions::top(N_LABELS)).unwrap());
        for row in answers.ranked.iter() {
            assert_eq!(row, sorted(row), "{:?}", model.describe());
        }
    }
}

#[test]
fn excluded_labels_leave_their_places_to_the_next_best() {
    let asked = Asked::new(20);
    for model in MODELS.1.iter().filter(|model| model.describe().kind != xc_tree::KIND) {
        let (full, without) = asked.with(model, |queries| {
            let full = model.predict_batch(queries, &QueryOptions::top(8)).unwrap();
            let exclude = [full.ranked.row(0)[0].label, full.ranked.row(0)[2].label];
            let options = QueryOptions { exclude: Excluded::Labels(&exclude), ..QueryOptions::top(6) };
            (full, model.predict_batch(queries, &options).unwrap())
        });
        let expected: Vec<Scored> = [1, 3, 4, 5, 6, 7].iter().map(|&at| full.ranked.row(0)[at]).collect();
        assert_eq!(without.ranked.row(0), expected, "{:?}", model.describe());
        // Each query its own.
        let lists: Vec<Vec<u32>> =
            full.ranked.iter().map(|row| row[..row.len() / 3].iter().map(|s| s.label).collect()).collect();
        let rows = LabelRows::from_lists(lists, N_LABELS).unwrap();
        let without = asked.with(model, |queries| {
            let exclude = Excluded::ByQuery { rows: &rows, first: 0 };
            POOL.install(|| model.predict_batch(queries, &QueryOptions { exclude, ..QueryOptions::top(6) }).unwrap())
        });
        for (full, without) in full.ranked.iter().zip(without.ranked.iter()) {
            let expected: Vec<Scored> = full.iter().skip(full.len() / 3).take(6).copied().collect();
            assert_eq!(without, expected, "{:?}", model.describe());
        }
    }
}

#[test]
fn features_that_were_made_before_are_answered_as_the_queries_they_came_from() {
    let asked = Asked::new(25);
    let makes = |model: &&Model| {
        let about = model.describe();
        // Members of a blend make features of a text each for itself.
        about.takes != InputKind::Dense && (about.kind != blend::KIND || about.takes != InputKind::Text)
    };
    for model in MODELS.1.iter().filter(makes) {
        let options = QueryOptions::default();
        let (made, plain) = asked
            .with(model, |queries| (model.features(queries).unwrap(), model.predict_batch(queries, &options).unwrap()));
        let again = model.predict_batch(made.view(), &QueryOptions { made: true, ..options }).unwrap();
        assert_eq!(again.ranked, plain.ranked, "{:?}", model.describe());
    }
}

#[test]
fn known_terms_are_counted() {
    let mut kinds = Vec::new();
    let (mut scratch, mut whole) = <(Scratch, Answer)>::default();
    let options = QueryOptions::default();
    for model in MODELS.1.iter().filter(|model| model.describe().takes == InputKind::Text) {
        let kind = model.describe().kind;
        kinds.push(kind);
        model.predict(&Row::Text("alpha3 beta3 nonsense"), &options, &mut scratch, &mut whole).unwrap();
        assert_eq!(whole.known_terms, Some(2), "{kind}");
        assert!(kind != xc_tree::KIND || whole.labels[0].label == 3);
        model.predict(&Row::Text("zzz"), &options, &mut scratch, &mut whole).unwrap();
        assert_eq!((whole.known_terms, whole.labels.len()), (Some(0), 0), "{kind}");
        let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let texts = Rows::texts(&["zzz", "alpha3 beta3 nonsense"]);
        let answers = pool.install(|| model.predict_batch(texts, &options)).unwrap();
        assert_eq!(answers.known_terms, [0, 2], "{kind}");
        assert!(answers.ranked.row(0).is_empty() && !answers.ranked.row(1).is_empty(), "{kind}");
    }
    assert!(kinds.contains(&blend::KIND) && kinds.len() > 3, "{kinds:?}");
}

#[test]
fn mach_answers_carry_a_certificate_and_others_do_not() {
    let asked = Asked::new(5);
    for model in &MODELS.1 {
        let answers = asked.with(model, |queries| model.predict_batch(queries, &QueryOptions::default()).unwrap());
        let expected = if model.describe().kind == xc_model::mach::KIND { 5 } else { 0 };
        assert_eq!(answers.certificates.len(), expected);
        assert!(answers.certificates.iter().all(|certificate| certificate.exact));
    }
}

#[test]
fn a_scratch_serves_one_model_after_the_other() {
    let asked = Asked::new(3);
    let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
    for model in MODELS.1.iter().chain(MODELS.1.iter().rev()) {
        asked.with(model, |queries| {
            let options = QueryOptions::default();
            model.predict(&queries.row(1), &options, &mut scratch, &mut answer).unwrap();
            assert_eq!(answer.labels, model.predict_batch(queries, &options).unwrap().ranked.row(1));
        });
    }
}

#[test]
fn a_folder_opened_twice_is_two_models_with_one_set_of_names() {
    let open = |name: &str| Model::open(Path::new(MODELS.0.path()).join(name)).unwrap();
    let (a, b) = (open("tree"), open("tree"));
    assert_ne!(a.generation(), b.generation());
    let names = b.label_names().unwrap().unwrap();
    assert_eq!((names.len(), names[3].as_str()), (N_LABELS, "label 3"));
    assert!(matches!(
        a.predict(&Row::Text("a"), &QueryOptions::default(), &mut Scratch::default(), &mut Answer::default()),
        Err(QueryError::Input { got: InputKind::Text, expected: InputKind::Sparse })
    ));
}

#[test]
fn a_text_without_a_known_term_takes_no_certificate_of_another() {
    let folder = tempfile::tempdir().unwrap();
    folders::mach(folder.path(), Front::Text);
    let model = Model::open(folder.path()).unwrap();
    let (texts, options, mut scratch) =
        (["alpha1 beta1", "zzz", "alpha17 gamma2"], QueryOptions::top(3), Scratch::default());
    let each = model.predict_each(Rows::texts(&texts), &options, &mut scratch).unwrap();
    assert!(each.ranked.row(1).is_empty() && each.certificates[1].exact);
    let mut answer = Answer::default();
    for at in [0, 2] {
        model.predict(&Row::Text(texts[at]), &options, &mut scratch, &mut answer).unwrap();
        assert_eq!((each.ranked.row(at), Some(each.certificates[at])), (&answer.labels[..], answer.certificate));
    }
}
