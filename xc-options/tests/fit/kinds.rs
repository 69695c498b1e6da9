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
