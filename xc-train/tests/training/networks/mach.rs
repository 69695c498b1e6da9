//! MACH models: repetitions trained alone, asked together.

use super::features;
use std::path::Path;
use xc_hash::universal::UniversalFamily;
use xc_mach::Decoder;
use xc_model::classifier::{ClassifierParams, EncoderParams};
use xc_model::mach::{
    Asking, MachContainer, MachModel, MachParams, MachScratch, OpenMachError, Repetition, bucket_rows, repetition_seed,
};
use xc_nn::schedule::Constant;
use xc_nn::trainer::{Silent, Subset};
use xc_nn::{Examples, Loss, Optimizer, Row, Rows, TrainParams, Trainer};
use xc_sparse::rank::{Scored, rank_order};
use xc_sparse::{CsrMatrix, LabelRows};
use xc_store::OpenMode;
use xc_train::{learn, preset};

const N_FEATURES: usize = 300;
const N_LABELS: usize = 60;

fn params(family: UniversalFamily, loss: Loss) -> MachParams {
    let mut classifier = ClassifierParams { loss, encoder: EncoderParams::bag([32]), ..preset::mach().params };
    (classifier.learning.input_dropout, classifier.learning.dropout) = (0.0, 0.0);
    MachParams { n_buckets: 12, family, decoder: Decoder::Mean, seed: 5, classifier }
}

/// One label a row, which the row's features tell.
fn data() -> (CsrMatrix, LabelRows) {
    let n = 120;
    (features(n, N_FEATURES), LabelRows::from_lists((0..n as u32).map(|i| [i % N_LABELS as u32]), N_LABELS).unwrap())
}

fn rows(x: &CsrMatrix) -> Rows<'_> {
    Rows::Sparse(x.view())
}

fn trained(params: &MachParams, number: u32, x: &CsrMatrix, y: &LabelRows, epochs: u32) -> Repetition {
    let buckets = bucket_rows(&params.assignment(N_LABELS, &[number]).unwrap(), 0, y);
    let examples = Examples::try_new(Rows::Sparse(x.view()), &buckets).unwrap();
    let (mut constant, optimizer) = (Constant, Optimizer::adam());
    let mut trainer = Trainer {
        loss: params.classifier.loss,
        optimizer,
        schedule: &mut constant,
        params: TrainParams {
            batch_size: 16,
            epochs,
            rate: 0.01,
            seed: repetition_seed(params.seed, number),
            ..Default::default()
        },
        checkpoint: None,
        hard: None,
        observer: &Silent,
    };
    let mut repetition = Repetition::new(params, N_FEATURES, number).unwrap();
    let sample = Subset::all(examples);
    learn::initialise(repetition.classifier_mut(), None, &sample, &Silent).unwrap();
    trainer.train(repetition.classifier_mut().network_mut(), &sample, None).unwrap();
    repetition
}

fn model(params: &MachParams, numbers: &[u32], epochs: u32) -> (MachModel, CsrMatrix, LabelRows) {
    let (x, y) = data();
    let repetitions = numbers.iter().map(|&number| trained(params, number, &x, &y, epochs)).collect();
    (MachModel::new(params.clone(), N_FEATURES, N_LABELS, repetitions).unwrap(), x, y)
}

fn save(model: &MachModel, params: &MachParams, folder: &Path, numbers: &[u32], epochs: u32) {
    let (x, y) = data();
    let mut writer = params.create(folder, model.n_features(), model.n_labels(), numbers).unwrap();
    for &number in numbers {
        trained(params, number, &x, &y, epochs).write(&mut writer).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn labels_are_found_through_a_fifth_as_many_buckets() {
    for loss in [Loss::Softmax, Loss::Bce] {
        let params = params(UniversalFamily::Prime, loss);
        let (model, x, y) = model(&params, &[0, 1, 2, 3, 4, 5], 60);
        let answers = model.predict_batch(rows(&x), &Asking::top(1)).unwrap();
        // Row 1 has no feature.
        let hits = (0..x.rows()).filter(|&i| answers.ranked.row(i)[0].label == y.row(i)[0]).count();
        assert!(hits * 10 >= 9 * x.rows(), "{loss:?}: {hits} of {}", x.rows());
        assert!(answers.certificates.iter().all(|c| c.exact));
        // One repetition cannot tell the labels of a bucket apart.
        let one = model.select(&[3]).unwrap();
        let answers = one.predict_batch(rows(&x), &Asking::top(1)).unwrap();
        let alone = (0..x.rows()).filter(|&i| answers.ranked.row(i)[0].label == y.row(i)[0]).count();
        assert!(alone * 2 < hits, "{loss:?}: {alone} against {hits}");
    }
}

#[test]
fn batch_one_candidates_and_a_plain_loop_agree() {
    for family in UniversalFamily::ALL {
        let (model, x, _) = model(&params(family, Loss::Softmax), &[1, 4, 2], 3);
        assert_eq!(model.assignment().numbers(), [1, 2, 4]);
        let mut scores: Vec<Vec<f32>> = Vec::new();
        let visit = |_: usize, block: &[f32]| {
            scores.extend(block.chunks(36).map(<[f32]>::to_vec));
            Ok::<(), ()>(())
        };
        model.blocks(rows(&x), visit).unwrap();
        assert_eq!(scores.len(), x.rows());
        let plain = |i: usize, labels: &[u32], decoder: Decoder, k: usize| {
            let score = |&label: &u32| {
                let mut values: Vec<f32> =
                    (0..3).map(|j| scores[i][j * 12 + model.assignment().bucket(j, label) as usize]).collect();
                let sum: f32 = values.iter().fold(0.0, |sum, v| sum + v);
                values.sort_by(f32::total_cmp);
                let score = match decoder {
                    Decoder::Mean => (12.0 / 11.0 * (f64::from(sum) / 3.0 - 1.0 / 12.0)) as f32,
                    Decoder::Min => values[0],
                    Decoder::Median => values[1],
                };
                Scored { label, score }
            };
            let mut ranked: Vec<Scored> = labels.iter().map(score).collect();
            ranked.sort_by(|&a, &b| rank_order(a, b));
            ranked.truncate(k);
            ranked
        };
        let all: Vec<u32> = (0..N_LABELS as u32).collect();
        let some: Vec<Vec<u32>> = (0..x.rows())
            .map(|i| all.iter().copied().filter(|l| (*l as usize * 7 + i) % 9 < i % 4).collect())
            .collect();
        let mut scratch = MachScratch::default();
        for decoder in Decoder::ALL {
            let asking = Asking { decoder: Some(decoder), ..Asking::top(100) };
            let batch = model.predict_batch(rows(&x), &asking).unwrap();
            let restricted = model.predict_candidates(rows(&x), |i| &some[i], 4, decoder).unwrap();
            for i in 0..x.rows() {
                let scores_of = |row: &[Scored]| row.iter().map(|s| s.score).collect::<Vec<_>>();
                let expected = plain(i, &all, decoder, 100);
                // The sum ranks more finely than its rounded score; sets and scores are equal.
                assert_eq!(scores_of(batch.ranked.row(i)), scores_of(&expected), "{family} {decoder} row {i}");
                assert_eq!(restricted.row(i), plain(i, &some[i], decoder, 4), "{family} {decoder} row {i}");
                let mut one = Vec::new();
                model.predict_one(Row::Sparse(x.view().row(i)), &asking, &mut scratch, &mut one).unwrap();
                assert_eq!(one, batch.ranked.row(i));
            }
        }
    }
}

#[test]
fn a_repetition_does_not_depend_on_threads_or_on_the_others() {
    let params = params(UniversalFamily::Prime, Loss::Bce);
    let (x, y) = data();
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let repetition = trained(&params, 3, &x, &y, 4);
            let values =
                repetition.classifier().network().parameters().into_iter().flat_map(|p| p.parameter.values().to_vec());
            values.map(f32::to_bits).collect::<Vec<u32>>()
        })
    };
    assert_eq!(bits(1), bits(2));
    let other = trained(&params, 2, &x, &y, 4);
    assert_ne!(
        other.classifier().network().parameters()[0].parameter.values()[..],
        trained(&params, 3, &x, &y, 4).classifier().network().parameters()[0].parameter.values()[..]
    );
}

#[test]
fn what_is_saved_answers_as_before_and_survives_the_loss_of_a_repetition() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let params = params(UniversalFamily::Prime, Loss::Softmax);
    let (model, x, _) = model(&params, &[0, 1, 5], 3);
    save(&model, &params, &path, &[0, 1, 5], 3);
    let open = || MachContainer::open(&path, OpenMode::Map).unwrap();
    let (opened, lost) = open().model(None).unwrap();
    assert!(lost.is_empty());
    let asking = Asking::top(7);
    assert_eq!(opened.predict_batch(rows(&x), &asking), model.predict_batch(rows(&x), &asking));
    let (pair, _) = open().model(Some(&[5, 0])).unwrap();
    assert_eq!(pair.assignment().numbers(), [0, 5]);
    let absent = open().model(Some(&[0, 3])).unwrap_err().to_string();
    assert!(absent.ends_with("no repetition 3; it has 0-1, 5"), "{absent}");
    assert!(matches!(open().model(Some(&[0, 0])), Err(OpenMachError::Params { .. })));

    let file = path.join("model-repetition-0001.safetensors");
    let whole = std::fs::read(&file).unwrap();
    let mut not_a_number = whole.clone();
    let end = not_a_number.len();
    not_a_number[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    for damage in [None, Some(&whole[..whole.len() / 2]), Some(&not_a_number)] {
        match damage {
            None => std::fs::remove_file(&file).unwrap(),
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
        }
        let (left, lost) = open().model(None).unwrap();
        assert_eq!(left.assignment().numbers(), [0, 5]);
        assert!(lost.len() == 1 && lost[0].to_string() == "repetition 1 is left out", "{lost:?}");
        assert_eq!(
            left.predict_batch(rows(&x), &asking),
            model.select(&[0, 5]).unwrap().predict_batch(rows(&x), &asking)
        );
        assert!(matches!(open().model(Some(&[1])), Err(OpenMachError::NothingLeft { .. })));
    }
}

#[test]
fn labels_are_added_without_training() {
    let (model, x, _) = model(&params(UniversalFamily::MultiplyShift, Loss::Softmax), &[0, 1], 2);
    let grown = model.grown_to(N_LABELS + 9).unwrap();
    let all = |m: &MachModel| m.predict_batch(rows(&x), &Asking::top(1000)).unwrap().ranked;
    let (before, after) = (all(&model), all(&grown));
    for (before, after) in before.iter().zip(after.iter()) {
        assert_eq!(after.len(), N_LABELS + 9);
        let old: Vec<Scored> = after.iter().copied().filter(|s| (s.label as usize) < N_LABELS).collect();
        assert_eq!(old, before);
    }
    // The prime of 60 labels is 61.
    let (model, ..) = self::model(&params(UniversalFamily::Prime, Loss::Softmax), &[0], 1);
    assert!(model.grown_to(61).is_ok() && model.grown_to(62).is_err());
}

#[test]
fn impossible_models_are_refused() {
    let good = params(UniversalFamily::Prime, Loss::Softmax);
    let message = |params: &MachParams, numbers: &[u32]| params.assignment(N_LABELS, numbers).unwrap_err().to_string();
    assert!(message(&MachParams { n_buckets: 60, ..good.clone() }, &[0]).contains("60 buckets for 60 labels"));
    assert!(message(&MachParams { n_buckets: 1, ..good.clone() }, &[0]).contains("expected at least 2"));
    assert!(message(&good, &[]).contains("0 repetitions"));
    assert!(message(&good, &[3, 3]).contains("named twice"));
    let mut bad = good;
    bad.classifier.encoder.widths_mut().clear();
    assert!(message(&bad, &[0]).contains("at least one width"));
}
