//! Labels found by their own texts.

use proptest::prelude::*;
use xc_metrics::{EvaluatorParams, Metric, evaluate};
use xc_model::blend::RuleKind;
use xc_model::{Answer, Candidates, Model, QueryOptions, Row, Rows, Scratch};
use xc_sparse::LabelRows;
use xc_sparse::rank::{Scored, rank_order};
use xc_train::names::NamesFit;

const WORDS: [&str; 12] =
    ["open", "ssl", "image", "magick", "http", "server", "mail", "client", "kernel", "driver", "font", "parser"];

fn text(words: &[usize]) -> String {
    words.iter().map(|&word| WORDS[word]).collect::<Vec<_>>().join(" ")
}

/// Cosines of the features that the model's pipeline makes, by the definition.
fn cosines(model: &Model, query: &str, labels: &[String]) -> Vec<f64> {
    let Some(xc_hash::text::Featurizer::Text(pipeline)) = model.pipeline() else { panic!("a pipeline of texts") };
    let row = |text: &str| {
        let (features, values) =
            pipeline.transform_batch(&[text]).iter().next().map(|(f, v)| (f.to_vec(), v.to_vec())).unwrap();
        features.into_iter().zip(values.into_iter().map(f64::from)).collect::<std::collections::BTreeMap<u32, f64>>()
    };
    let query = row(query);
    let length = |row: &std::collections::BTreeMap<u32, f64>| row.values().map(|v| v * v).sum::<f64>().sqrt();
    labels
        .iter()
        .map(|label| {
            let label = row(label);
            let product: f64 = label.iter().filter_map(|(feature, value)| Some(value * query.get(feature)?)).sum();
            if product == 0.0 { 0.0 } else { product / length(&query) / length(&label) }
        })
        .collect()
}

fn answer(model: &Model, query: &str, options: &QueryOptions<'_>) -> Vec<Scored> {
    let (mut scratch, mut out) = (Scratch::default(), Answer::default());
    model.predict(&Row::Text(query), options, &mut scratch, &mut out).unwrap();
    out.labels
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn scores_are_cosines_of_the_definition_alone_and_among_others(
        rows in prop::collection::vec(prop::collection::vec(0usize..12, 0..8), 0..12),
        labels in prop::collection::vec(prop::collection::vec(0usize..12, 0..4), 1..20),
        queries in prop::collection::vec(prop::collection::vec(0usize..12, 0..6), 1..5),
        k in 1usize..25,
    ) {
        prop_assume!(labels.iter().any(|words| !words.is_empty()));
        let [rows, labels, queries] = [rows, labels, queries].map(|all| all.iter().map(|words| text(words)).collect::<Vec<_>>());
        let model = NamesFit::default().fit(&rows, &labels, None).unwrap();
        let k = k.min(labels.len());
        let views: Vec<&str> = queries.iter().map(|text| &**text).collect();
        let all = model.predict_batch(Rows::texts(&views), &QueryOptions::top(k)).unwrap();
        let some: Vec<u32> = (0..labels.len() as u32).step_by(2).collect();
        for (at, query) in queries.iter().enumerate() {
            let found = answer(&model, query, &QueryOptions::top(k));
            prop_assert_eq!(&found, all.ranked.row(at));
            let cosines = cosines(&model, query, &labels);
            let mut expected: Vec<Scored> = (0u32..).zip(&cosines).map(|(label, &score)| Scored { label, score: score as f32 }).collect();
            expected.retain(|s| s.score > 0.0);
            expected.sort_by(|&a, &b| rank_order(a, b));
            prop_assert_eq!(found.len(), expected.len().min(k));
            for (got, wanted) in found.iter().zip(&expected) {
                prop_assert!((got.score - wanted.score).abs() < 1e-5 && (f64::from(got.score) - cosines[got.label as usize]).abs() < 1e-5);
            }
            // Candidates have the scores that they have among all labels.
            let options = QueryOptions { candidates: Candidates::Labels(&some), ..QueryOptions::top(labels.len()) };
            let everything = answer(&model, query, &QueryOptions::top(labels.len()));
            for got in answer(&model, query, &options) {
                prop_assert!(some.contains(&got.label));
                let among_all = everything.iter().find(|s| s.label == got.label).map_or(0.0, |s| s.score);
                prop_assert_eq!(got.score, among_all);
            }
        }
    }
}

#[test]
fn terms_of_labels_are_kept_from_their_first_occurrence_and_a_folder_answers_the_same() {
    let rows = ["a flaw in the image parser", "a flaw in the mail client", "a flaw in the http server"];
    let labels = ["image parser", "mail client", "zlib", ""];
    let names = ["IP", "MC", "ZL", "NO"].map(str::to_owned);
    let model = NamesFit::default().fit(&rows, &labels, Some(&names)).unwrap();
    // "zlib" occurs once, in the text of its label; "server" once, in a row.
    assert_eq!(answer(&model, "zlib 1.2", &QueryOptions::top(4)).iter().map(|s| s.label).collect::<Vec<_>>(), [2]);
    assert!(answer(&model, "server", &QueryOptions::top(4)).is_empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    model.save(&path).unwrap();
    let opened = Model::open(&path).unwrap();
    assert_eq!((opened.describe().kind, opened.describe().n_labels), ("names", 4));
    assert_eq!(opened.label_names().unwrap().as_deref(), Some(&names[..]));
    for query in ["an image of a mail", "zlib image", ""] {
        assert_eq!(answer(&opened, query, &QueryOptions::top(4)), answer(&model, query, &QueryOptions::top(4)));
    }
    let rows_of = opened.training_rows().unwrap().unwrap();
    assert_eq!((rows_of.n_instances(), rows_of.label_counts()), (0, &[0; 4][..]));
    assert!(
        NamesFit::default().fit(&rows, &[""; 0], None).is_err()
            && NamesFit::default().fit(&[""; 0], &["", "?"], None).is_err()
    );
    let few = NamesFit::default().fit(&rows, &["image"], Some(&names)).unwrap_err().to_string();
    assert_eq!(few, "4 names for the texts of 1 labels; one a label is expected");
}

/// Each label is called by a word of its own; half of the labels have no training row.
#[test]
fn a_blend_of_a_tree_and_names_finds_labels_without_a_training_row() {
    let n_labels = 60u32;
    let name = |label: u32| format!("product{label}");
    let of = |row: u32, n: u32| {
        let label = row * 7 % n;
        (format!("{} has a flaw of kind k{} in part p{}", name(label), row % 5, row % 11), vec![label])
    };
    type Made = (Vec<String>, Vec<Vec<u32>>);
    let (train, held): (Made, Made) =
        ((0..600).map(|row| of(row, 30)).unzip(), (0..300).map(|row| of(row + 1000, n_labels)).unzip());
    let folder = tempfile::tempdir().unwrap();
    let labels_of = |lists: &[Vec<u32>]| LabelRows::from_lists(lists.to_vec(), n_labels as usize).unwrap();
    let data = xc_data::Data::new(train.0.clone(), labels_of(&train.1));
    let context = xc_train::fit::Context::new(&xc_train::fit::Silent);
    let tree = xc_train::kinds::Fit::fit(&xc_train::kinds::TreeFit::default(), &data, None, &context).unwrap().model;
    let texts: Vec<String> = (0..n_labels).map(name).collect();
    let names = NamesFit::default().fit(&train.0, &texts, None).unwrap();
    let views: Vec<&str> = held.0.iter().map(|text| &**text).collect();
    let answers =
        [&tree, &names].map(|model| model.predict_batch(Rows::texts(&views), &QueryOptions::top(30)).unwrap().ranked);
    let truth = labels_of(&held.1);
    let counts: Vec<u32> = (0..n_labels).map(|label| if label < 30 { 20 } else { 0 }).collect();
    let params = xc_train::blend::FitParams { folds: 3, networks: 1, ..Default::default() };
    let fitted = xc_train::blend::fit(&answers, &truth, &counts, &params, &xc_buffer::Silent).unwrap();
    let p1 = |of: &xc_metrics::MetricReport| of.value(Metric::Precision(1)).unwrap();
    let best = fitted.judged.iter().map(|judged| p1(&judged.metrics)).fold(0.0, f64::max);
    let alone = p1(&evaluate(&truth, &answers[0], EvaluatorParams::new(n_labels as usize)).unwrap());
    assert!(alone < 0.6 && best > 0.95, "{alone} and {best}");
    assert_ne!(fitted.rule.kind(), RuleKind::ReciprocalRanks);
    // In a folder, opened and asked as one model.
    let save = |model: Model, name: &str| {
        model.save(folder.path().join(name)).unwrap();
        Model::open(folder.path().join(name)).unwrap()
    };
    let members = vec![save(tree, "tree"), save(names, "names")];
    let path = folder.path().join("blend");
    xc_train::fit::save_with(&path, xc_model::blend::KIND, Default::default(), |writer| {
        xc_model::write_blend(writer, &fitted.rule, &fitted.features, &members, None)
    })
    .unwrap();
    let blend = Model::open(&path).unwrap();
    let unseen = "product45 has a flaw of kind k1 in part p2";
    assert_eq!(answer(&blend, unseen, &QueryOptions::top(1))[0].label, 45);
}
