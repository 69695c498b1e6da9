//! Kinds as values: the folders of typed parameters have the bytes of those of settings by name, and what is impossible is
//! said by its place.

use super::{files_of, rows, texts, trained};
use std::collections::BTreeMap;
use std::path::Path;
use xc_data::Data;
use xc_dense::DenseMatrix;
use xc_train::fit::{Arrays, Context, FitError, Place, Silent};
use xc_train::kinds::{FeatureParams, Fit, MachFit, NetworkKind, TrainingShape, TreeFit};
use xc_train::network::NetworkParams;

/// The kinds with few epochs, which a setting and a field say.
const FEW: &[(&str, &str)] = &[("epochs", "2")];

fn few(network: &mut NetworkParams) {
    network.training.epochs = 2;
}

/// What a kind usually is for these instances.
fn usual(kind: &str, shape: &TrainingShape) -> Result<Box<dyn Fit>, FitError> {
    if kind == "tree" {
        return Ok(Box::new(TreeFit::default()));
    }
    if kind == "mach" {
        let mut mach = MachFit::usual(shape)?;
        few(&mut mach.network);
        mach.check(shape)?;
        return Ok(Box::new(mach));
    }
    let kind = NetworkKind::ALL.into_iter().find(|known| known.name() == kind).expect("a kind of network");
    let mut network = kind.usual(shape)?;
    few(&mut network.network);
    network.check(shape)?;
    Ok(Box::new(network))
}

/// The files of the same model in memory, saved.
fn of_memory(fit: &dyn Fit, kind: &str, data: &Data<'_>, judge: Option<&Data<'_>>) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved");
    let fitted = fit.fit(data, judge, &context()).unwrap();
    assert_eq!((fitted.report.kind, fitted.report.metrics.is_some()), (kind, judge.is_some()));
    fitted.model.save(&path).unwrap();
    files_of(&path, kind)
}

fn context() -> Context<'static> {
    Context::new(&Silent).with_seed(3).with_threads(2)
}

#[test]
fn a_kind_as_a_value_trains_what_its_usual_settings_train() {
    let ((texts, labels), (rows, _)) = (texts(), rows());
    let vectors = DenseMatrix::new(240, 6, (0..240 * 6).map(|i| ((i * i % 89) as f32).sin()).collect::<Vec<_>>());
    let all = [Data::new(texts, labels.clone()), Data::new(rows, labels.clone()), Data::new(vectors, labels)];
    for data in &all {
        let held_out: Vec<u32> = (0..240).filter(|i| i % 7 == 3).collect();
        let judge = data.select(&held_out);
        for kind in ["tree", "mach", "dense", "uniform", "lns", "astra"] {
            let shape = FeatureParams::default().shape(data, &context()).unwrap();
            let typed = usual(kind, &shape).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let settings = if kind == "tree" { &[] } else { FEW };
            for judge in [None, Some(&judge)] {
                let mut arrays = Arrays::from(data.select(&Vec::from_iter(0..240)));
                arrays.validation = judge.map(|judge| judge.select(&Vec::from_iter(0..judge.labels.len() as u32)));
                let named = trained(kind, arrays.into(), settings, folder.path());
                let path = folder.path().join("typed");
                let report = typed.fit_into(data, judge, &Place::new(&path), &context()).unwrap();
                assert_eq!((report.kind, report.model.as_path()), (kind, Path::new(&path)));
                let what = format!("{kind} of {}, judged: {}", data.rows().kind(), judge.is_some());
                assert!(files_of(&path, kind) == named, "{what}");
                assert!(of_memory(&*typed, kind, data, judge) == named, "{what}, in memory");
            }
        }
    }
}

/// Settings beside the usual ones, which change each kind.
fn chosen(kind: &str) -> Vec<(&'static str, &'static str)> {
    let mut chosen = vec![("text.ngrams", "2"), ("text.min-df", "1")];
    chosen.extend_from_slice(match kind {
        "tree" => &[("trees", "2"), ("tree.branching", "3"), ("linear.cost", "0.5"), ("normalise", "false")][..],
        _ => &[("epochs", "2"), ("batch", "16"), ("optimizer.rate", "0.01"), ("tfidf", "true"), ("clip-norm", "3")],
    });
    chosen.extend_from_slice(match kind {
        "mach" => &[("repetitions", "3"), ("buckets", "7"), ("decoder", "mean")][..],
        "dense" => &[("wide", "on"), ("wide.cost", "2"), ("loss", "bce")],
        "uniform" => &[("head.fan-in", "3"), ("network.intermediate", "24")],
        "lns" => &[("sampler", "frequency"), ("negatives.sampled", "3")],
        "astra" => &[("head.precision", "bf16"), ("network.widths", "12")],
        _ => &[],
    });
    chosen
}

#[test]
fn a_kind_with_settings_by_name_is_a_value_that_trains_the_same() {
    let ((texts, labels), (rows, _)) = (texts(), rows());
    for (data, is_text) in [(Data::new(texts, labels.clone()), true), (Data::new(rows, labels), false)] {
        for kind in ["tree", "mach", "dense", "uniform", "lns", "astra"] {
            let mut settings = chosen(kind);
            let idle = if is_text { ["tfidf", "normalise"] } else { ["text.ngrams", "text.min-df"] };
            settings.retain(|(name, _)| !idle.contains(name));
            let folder = tempfile::tempdir().unwrap();
            let named =
                trained(kind, Arrays::from(data.select(&Vec::from_iter(0..240))).into(), &settings, folder.path());
            let value = xc_options::fit_of(kind, &settings, &data, &context()).unwrap();
            assert!(of_memory(&*value, kind, &data, None) == named, "{kind}, text: {is_text}");
        }
    }
}

#[test]
fn what_a_value_has_no_place_for_is_refused_by_its_name() {
    let ((rows, labels), n) = (rows(), 240 * 6);
    let vectors = DenseMatrix::new(240, 6, (0..n).map(|i| ((i * i % 89) as f32).sin()).collect::<Vec<_>>());
    let (sparse, vectors) = (Data::new(rows, labels.clone()), Data::new(vectors, labels));
    for (kind, settings, data, expected) in [
        ("forest", &[][..], &sparse, "no kind of model is called \"forest\""),
        ("tree", &[("epochs", "3")], &sparse, "--epochs: models of kind tree have no such setting"),
        ("tree", &[("trees", "many")], &sparse, "--trees many: expected a number from 0 on"),
        ("tree", &[("format", "csv")], &sparse, "--format has no effect here: it needs a file"),
        ("tree", &[("validation-fraction", "0.1")], &sparse, "--validation-fraction 0.1: it is about a run of its own"),
        ("lns", &[("checkpoint-every", "9")], &sparse, "--checkpoint-every 9: it is about a run of its own"),
        ("dense", &[("tfidf", "true")], &vectors, "--tfidf: it is for sparse rows"),
        ("dense", &[("wide", "off"), ("wide.cost", "2")], &sparse, "--wide.cost has no effect with --wide off"),
        ("skipgram", &[], &sparse, "models of kind skipgram are trained on texts without labels"),
    ] {
        let refused = xc_options::fit_of(kind, settings, data, &context()).err().expect(expected).to_string();
        assert!(refused.starts_with(expected), "{kind} {settings:?}: {refused}");
    }
}

#[test]
fn what_is_impossible_is_said_by_its_place_before_any_work() {
    let (rows, labels) = rows();
    let data = Data::new(rows, labels);
    let shape = FeatureParams::default().shape(&data, &context()).unwrap();
    let mut lns = NetworkKind::Lns.usual(&shape).unwrap();
    lns.network.training.epochs = 0;
    let said = |error: FitError| error.to_string();
    assert_eq!(said(lns.check(&shape).unwrap_err()), "training.epochs 0: at least 1 is expected");
    assert_eq!(said(lns.fit(&data, None, &context()).unwrap_err()), "training.epochs 0: at least 1 is expected");
    let mut dense = NetworkKind::Dense.usual(&shape).unwrap();
    *dense.network.classifier.encoder.widths_mut() = vec![8, 0];
    let wide = said(dense.check(&shape).unwrap_err());
    assert!(wide.starts_with("classifier: ") && wide.contains("none of them 0"), "{wide}");
    let mut mach = MachFit::usual(&shape).unwrap();
    mach.layout.n_buckets = 1_000;
    assert!(said(mach.check(&shape).unwrap_err()).starts_with("layout: "), "more buckets than labels");
    let place = Place { part: Some("1/2".parse().unwrap()), ..Place::new("m") };
    let parted = said(mach.fit_into(&data, None, &place, &context()).unwrap_err());
    assert_eq!(parted, "part 1/2: a whole model is expected here");
    let nothing = data.select(&[]);
    assert!(TreeFit::default().fit(&nothing, None, &context()).is_err());
}
