//! The dense baseline: trained, saved, opened, asked.

use crate::reference::{features, targets};
use xc_sparse::store::{ArrayRef, Container, ContainerWriter, OpenMode};
use xc_sparse::{LabelRows, Rows};
use xc_train::dense::{DenseModel, KIND};
use xc_train::schedule::Constant;
use xc_train::trainer::{Sample, Silent};
use xc_train::{Examples, Features, Loss, NetworkParams, OpenNetworkError, Optimizer, TrainParams, Trainer};

fn trained(loss: Loss, x: &xc_sparse::CsrMatrix, y: &LabelRows) -> DenseModel {
    let params = NetworkParams { widths: vec![32, 16], dropout: 0.0, loss, seed: 3 };
    let mut model = DenseModel::new(x.cols(), y.n_labels(), params);
    let examples = Examples::try_new(Features::Sparse(Rows::new(x.view())), y).unwrap();
    let (mut constant, optimizer) = (Constant, Optimizer::adam());
    let mut trainer = Trainer {
        loss: loss,
        optimizer,
        schedule: &mut constant,
        params: TrainParams { batch_size: 8, epochs: 120, rate: 0.01, ..Default::default() },
        checkpoint: None,
        log: None,
        observer: &Silent,
    };
    model.train(&mut trainer, &Sample::all(examples), None).unwrap();
    model
}

#[test]
fn it_learns_its_training_rows_and_survives_the_disk() {
    let (x, y) = (features(40, 60), targets(40, 25));
    for loss in [Loss::Softmax, Loss::Bce, Loss::SquaredHinge] {
        let model = trained(loss, &x, &y);
        let answers = model.predict_batch(x.view(), 3);
        answers.check().unwrap();
        let with_labels: Vec<usize> = (0..40).filter(|&i| !y.row(i).is_empty()).collect();
        let hits = with_labels.iter().filter(|&&i| y.row(i).contains(&answers.row(i)[0].label)).count();
        assert!(hits * 10 >= with_labels.len() * 9, "{loss:?}: {hits} of {}", with_labels.len());
        assert!(answers.iter().flatten().all(|s| (0.0..=1.0).contains(&s.score)));
        assert_eq!(model.predict_batch(x.view(), 100).row(0).len(), 25, "never more than there are labels");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let mut writer = ContainerWriter::create(&path, KIND).unwrap();
        model.write(&mut writer).unwrap();
        writer.finish().unwrap();
        let opened = DenseModel::open(&Container::open(&path, OpenMode::Map).unwrap()).unwrap();
        assert_eq!(opened.params(), model.params());
        assert_eq!(opened.predict_batch(x.view(), 3), answers);
    }
}

#[test]
fn a_folder_that_is_no_dense_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let model = DenseModel::new(5, 4, NetworkParams { widths: vec![3], ..Default::default() });
    let save = |kind: &str, change: &dyn Fn(&mut ContainerWriter)| {
        let mut writer = ContainerWriter::create(&path, kind).unwrap();
        model.write(&mut writer).unwrap();
        change(&mut writer);
        writer.finish().unwrap();
        DenseModel::open(&Container::open(&path, OpenMode::Read).unwrap())
    };
    assert!(save(KIND, &|_| ()).is_ok());
    assert!(matches!(save("tree", &|_| ()), Err(OpenNetworkError::Container(_))));
    assert!(matches!(save(KIND, &|w| w.set_parameter("n_labels", u64::MAX / 2)), Err(OpenNetworkError::Container(_))));
    let shape = |w: &mut ContainerWriter| w.set_parameter("network", serde_json::json!({ "widths": [] }));
    assert!(matches!(save(KIND, &shape), Err(OpenNetworkError::Shape { .. })));
    // Empty arrays of any shape weigh nothing on disk; the network that they ask for would.
    let without_width = |w: &mut ContainerWriter| w.set_parameter("network", serde_json::json!({ "widths": [0] }));
    assert!(matches!(save(KIND, &without_width), Err(OpenNetworkError::Shape { .. })));
    let unknown =
        |w: &mut ContainerWriter| w.set_parameter("network", serde_json::json!({ "widths": [3], "depth": 4 }));
    assert!(matches!(save(KIND, &unknown), Err(OpenNetworkError::Container(_))));
    assert_eq!(model.predict_batch(xc_sparse::CsrMatrix::zero((0, 5)).view(), 3).len(), 0);
}

#[test]
fn a_bias_that_the_file_does_not_hold_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let mut writer = ContainerWriter::create(&path, KIND).unwrap();
    let width = 1usize << 50;
    writer.set_parameter("n_features", 0u64);
    writer.set_parameter("n_labels", 0u64);
    writer.set_parameter("network", serde_json::json!({ "widths": [width] }));
    for (name, shape) in [("bag.table", [0, width]), ("head.weights", [0, width]), ("head.bias", [0, 1])] {
        writer.add(name, ArrayRef::new::<f32>(&[], &shape)).unwrap();
    }
    writer.add("bag.bias", ArrayRef::new(&[0.5f32], &[1, 1])).unwrap();
    writer.finish().unwrap();
    let opened = DenseModel::open(&Container::open(&path, OpenMode::Read).unwrap());
    let message = opened.unwrap_err().to_string();
    assert!(message.contains("bag.bias") && message.contains("1125899906842624"), "{message}");
}

#[test]
fn a_model_without_labels_answers_every_query_with_nothing() {
    let model = DenseModel::new(5, 0, NetworkParams { widths: vec![3], ..Default::default() });
    let answers = model.predict_batch(xc_sparse::CsrMatrix::zero((2, 5)).view(), 3);
    assert_eq!((answers.len(), answers.iter().flatten().count()), (2, 0));
}
