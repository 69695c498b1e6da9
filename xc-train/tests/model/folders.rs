//! Model folders of every kind, small.

use std::path::Path;
use xc_buffer::{Cancel, DType};
use xc_hash::text::{Featurizer, Pipeline, PipelineParams, RowWeights, TermWeighting};
use xc_hash::universal::UniversalFamily;
use xc_mach::Decoder;
use xc_model::blend::{self, RuleKind};
use xc_model::classifier::{Classifier, ClassifierParams, EmbeddingInit, EncoderParams, HeadParams, InputKind};
use xc_model::mach::{MachParams, Repetition};
use xc_model::{Model, QueryOptions, Rows, write_blend, write_pipeline};
use xc_nn::Loss;
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::ContainerWriter;
use xc_train::blend::{FitParams, fit};
use xc_train::preset;
use xc_tree::{TrainInput, TreeModel, TreeParams};

pub(crate) const N_LABELS: usize = 40;
pub(crate) const N_FEATURES: usize = 90;
pub(crate) const WIDTH: usize = 12;

/// What stands before a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Nothing: features as they come.
    Plain,
    /// A pipeline of text.
    Text,
    /// Weights of counts.
    Weights,
}

/// Texts that share words with their labels.
pub(crate) fn texts() -> Vec<String> {
    (0..120).map(|i| format!("alpha{} beta{} gamma{} delta", i % N_LABELS, i % 7, i % 11)).collect()
}

/// Rows of a few features each, one of which tells the label.
pub(crate) fn rows(n: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let mut row = vec![(i % N_LABELS) as u32, 40 + (i * i % 25) as u32, 65 + (i * 7 % 25) as u32];
        row.sort_unstable();
        for (at, f) in row.into_iter().enumerate() {
            indices.push(f);
            values.push(1.0 + ((i + at) % 3) as f32);
        }
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((n, N_FEATURES), indptr, indices, values)
}

pub(crate) fn labels(n: usize) -> LabelRows {
    LabelRows::from_lists((0..n).map(|i| [(i % N_LABELS) as u32]), N_LABELS).unwrap()
}

/// The rows that a model behind a front is trained on.
fn made(front: Front) -> (CsrMatrix, Option<Featurizer>) {
    match front {
        Front::Plain => (rows(120), None),
        Front::Text => {
            let pipeline = Pipeline::fit(PipelineParams::default(), &texts()).unwrap();
            let rows = pipeline.transform_batch(&texts());
            let shape = (rows.iter().len(), rows.n_features);
            let x = CsrMatrix::try_new(shape, rows.indptr, rows.indices, rows.values).unwrap();
            (x, Some(Featurizer::Text(pipeline)))
        }
        Front::Weights => {
            let mut x = rows(120);
            let width = x.cols();
            let (indptr, indices, values) = x.parts_mut();
            let weights = RowWeights::fit(TermWeighting::default(), width, indptr, indices, values).unwrap();
            weights.apply(width, indptr, indices, values).unwrap();
            (x, Some(Featurizer::Rows(weights)))
        }
    }
}

fn finish(mut writer: ContainerWriter, maker: Option<&Featurizer>) {
    if let Some(maker) = maker {
        write_pipeline(&mut writer, maker.to_parts()).unwrap();
    }
    let names: Vec<String> = (0..N_LABELS).map(|l| format!("label {l}")).collect();
    writer.labels(&names).unwrap();
    writer.finish().unwrap();
}

pub(crate) fn tree(folder: &Path, front: Front, n_trees: usize) {
    let (x, maker) = made(front);
    let y = labels(x.rows());
    let params = TreeParams { n_trees, ..TreeParams::default() };
    let model = TreeModel::train(&TrainInput::new(x.view(), &y), &params).unwrap();
    let mut writer = ContainerWriter::create(folder, xc_tree::KIND).unwrap();
    model.write(&mut writer).unwrap();
    finish(writer, maker.as_ref());
}

pub(crate) fn dense(folder: &Path, front: Front, loss: Loss) {
    let (x, maker) = made(front);
    let mut params = preset::dense().params;
    (params.encoder, params.loss) = (EncoderParams::bag([16, 8]), loss);
    classifier(folder, preset::DENSE, x.cols(), params, maker.as_ref());
}

pub(crate) fn uniform(folder: &Path, input: InputKind, loss: Loss) {
    let mut params = preset::uniform().params;
    let (encoder, n_features) = match input {
        InputKind::Sparse => (EncoderParams::bag([16, 64]), N_FEATURES),
        _ => (EncoderParams::vectors([64]), WIDTH),
    };
    (params.encoder, params.loss) = (encoder, loss);
    params.learning.init = EmbeddingInit::Random;
    if let HeadParams::Sparse(head) = &mut params.head {
        head.fan_in = 8;
    }
    classifier(folder, preset::UNIFORM, n_features, params, None);
}

pub(crate) fn lns(folder: &Path, front: Front, loss: Loss, rows: DType) {
    let (x, maker) = made(front);
    let mut params = preset::lns().params;
    (params.encoder, params.loss) = (EncoderParams::bag([16, 8]), loss);
    if let HeadParams::Candidates(head) = &mut params.head {
        head.rows = rows;
    }
    classifier(folder, preset::LNS, x.cols(), params, maker.as_ref());
}

pub(crate) fn astra(folder: &Path, front: Front) {
    let (x, maker) = made(front);
    let mut params = preset::astra().params;
    params.encoder = EncoderParams::bag([16, 8]);
    classifier(folder, preset::ASTRA, x.cols(), params, maker.as_ref());
}

fn classifier(folder: &Path, kind: &str, n_features: usize, params: ClassifierParams, maker: Option<&Featurizer>) {
    let model = Classifier::new(kind, n_features, N_LABELS, params).unwrap();
    let mut writer = ContainerWriter::create(folder, kind).unwrap();
    model.write(&mut writer).unwrap();
    finish(writer, maker);
}

/// Nobody stops it.
struct Never;

impl Cancel for Never {}

/// A blend of models that are trained or not, fitted to what they were trained on: good for nothing but
/// to be asked.
pub(crate) fn blend(folder: &Path, members: &[&Path], rule: RuleKind) {
    let members: Vec<Model> = members.iter().map(|path| Model::open(path).unwrap()).collect();
    Model::check_members(&members).unwrap();
    let (texts, x) = (texts(), rows(120));
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let queries = match members[0].describe().takes {
        InputKind::Text => Rows::texts(&texts),
        _ => Rows::Sparse(x.view()),
    };
    let ask = |member: &Model| member.predict_batch(queries, &QueryOptions::top(blend::DEPTH)).unwrap().ranked;
    let answers: Vec<_> = members.iter().map(ask).collect();
    let params = FitParams { rule: Some(rule), folds: 2, networks: 2, epochs: 2, ..FitParams::default() };
    let fitted = fit(&answers, &labels(120), &[3; N_LABELS], &params, &Never).unwrap();
    let mut writer = ContainerWriter::create(folder, blend::KIND).unwrap();
    write_blend(&mut writer, &fitted.rule, &fitted.features, &members, None).unwrap();
    finish(writer, None);
}

pub(crate) fn mach(folder: &Path, front: Front) {
    let (x, maker) = made(front);
    let mut classifier = preset::dense().params;
    (classifier.encoder, classifier.loss) = (EncoderParams::bag([16]), Loss::Softmax);
    let params =
        MachParams { n_buckets: 12, family: UniversalFamily::Prime, decoder: Decoder::Median, seed: 5, classifier };
    let numbers = [0, 1, 2, 3];
    let mut writer = params.create(folder, x.cols(), N_LABELS, &numbers).unwrap();
    for number in numbers {
        Repetition::new(&params, x.cols(), number).unwrap().write(&mut writer).unwrap();
    }
    finish(writer, maker.as_ref());
}
