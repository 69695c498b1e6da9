//! Classifiers and MACH models on a device answer with the bits that they answer with on the CPU.

use proptest::prelude::*;
use std::sync::Arc;
use xc_buffer::dtype::DType;
use xc_dense::DenseRows;
use xc_dense::MatmulPrecision;
use xc_hash::universal::UniversalFamily;
use xc_mach::{Decoder, DeviceScanError, Effort};
use xc_model::classifier::{
    BagParams, CandidateHeadParams, Classifier, ClassifierParams, ClassifierScratch, DevicePredictError, EmbeddingInit,
    EncoderParams, HeadParams, Only, PredictError, ScoreScale, SparseHeadParams, Wide, WideParams, Wiring,
};
use xc_model::mach::{AnswerError, Asking, DeviceAnswerError, MachModel, MachParams, Repetition};
use xc_nn::cuda::xc_kernels::{Device, Emulated};
use xc_nn::{Activation, Loss, Rows};
use xc_sparse::rank::RankedBatch;
use xc_sparse::{CsrMatrix, LabelRows};
use xc_train::preset;
use xc_tree::RankerWeights;

const N_FEATURES: usize = 50;

/// Sparse rows; every sixth is empty.
fn features(n: usize) -> CsrMatrix {
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for i in 0..n {
        indices.extend((0..N_FEATURES as u32).filter(|f| i % 6 != 1 && (f * 13 + i as u32 * 7) % 17 < 3));
        indptr.push(indices.len());
    }
    let values = (0..indices.len()).map(|at| (at * 31 % 19) as f32 / 9.0 - 1.0).collect();
    CsrMatrix::from_checked((n, N_FEATURES), indptr, indices, values)
}

fn bits(ranked: &RankedBatch) -> Vec<Vec<(u32, u32)>> {
    ranked.iter().map(|row| row.iter().map(|s| (s.label, s.score.to_bits())).collect()).collect()
}

fn params(
    loss: Loss,
    widths: &[usize],
    head: HeadParams,
    activation: Activation,
    precision: MatmulPrecision,
) -> ClassifierParams {
    let encoder = EncoderParams::Bag(BagParams { widths: widths.to_vec(), activation });
    let mut params = ClassifierParams { encoder, head, loss, precision, ..preset::dense().params };
    params.learning.init = EmbeddingInit::Random;
    params.learning.seed = 3;
    params
}

/// Rankers of about every second feature.
fn wide(n_labels: usize, labels: usize, precision: DType) -> Wide {
    let (mut indptr, mut features) = (vec![0], Vec::new());
    for label in 0..n_labels {
        features.extend((0..N_FEATURES as u32).filter(|f| (*f as usize * 3 + label * 5) % 7 < 3));
        indptr.push(features.len());
    }
    let weights = (0..features.len()).map(|at| (at * 37 % 23) as f32 / 12.0 - 0.9).collect();
    let rows = CsrMatrix::from_checked((n_labels, N_FEATURES), indptr, features, weights);
    let bias: Vec<f32> = (0..n_labels).map(|label| (label % 5) as f32 * 0.1 - 0.3).collect();
    let params = WideParams { weight: 0.3, labels, precision };
    Wide { params, rankers: RankerWeights::nearest(rows, bias, precision) }
}

fn heads() -> impl Strategy<Value = HeadParams> {
    let weights = prop::sample::select(vec![DType::F32, DType::Bf16, DType::F16, DType::E4m3]);
    let wiring = prop::sample::select(vec![Wiring::Uniform, Wiring::Unstructured]);
    prop_oneof![
        Just(HeadParams::Dense),
        prop::sample::select(vec![DType::F32, DType::Bf16])
            .prop_map(|rows| HeadParams::Candidates(CandidateHeadParams { rows })),
        (1usize..9, wiring, weights).prop_map(|(fan_in, wiring, weights)| HeadParams::Sparse(SparseHeadParams {
            fan_in,
            wiring,
            weights
        })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn classifiers(
        loss in prop::sample::select(vec![Loss::Bce, Loss::Softmax, Loss::SquaredHinge]), head in heads(),
        widths in prop::sample::select(vec![vec![9], vec![12, 10]]),
        activation in prop::sample::select(vec![Activation::Relu, Activation::Identity]),
        precision in prop::sample::select(vec![MatmulPrecision::F32, MatmulPrecision::Bf16]),
        wide_labels in prop::option::of(1usize..30), is_logit: bool, n in 0usize..8, k in 0usize..50, seed in 1u64..4,
    ) {
        let emulated = Emulated::hold();
        emulated.set_seed(seed);
        let device = Arc::new(Device::open(0).unwrap());
        let (n_labels, x) = (40, features(n));
        let of = params(loss, &widths, head, activation, precision);
        let mut classifier = Classifier::new(preset::DENSE, N_FEATURES, n_labels, of).unwrap();
        classifier.set_wide(wide_labels.map(|labels| wide(n_labels, labels, DType::Bf16)));
        if is_logit {
            classifier.set_scale(Some(ScoreScale::Logit));
        }
        let on_device = classifier.on(&device).unwrap();
        let rows = LabelRows::from_lists((0..n as u32).map(|i| (i..40).step_by(i as usize + 1).collect::<Vec<_>>()), n_labels).unwrap();
        let some = [3, 4, 17, 39];
        for only in [Only::All, Only::Labels(&some), Only::Rows { rows: &rows, first: 0 }] {
            let expected = classifier.predict(Rows::Sparse(x.view()), k, only, &mut ClassifierScratch::default());
            let got = on_device.predict(Rows::Sparse(x.view()), k, only, &mut ClassifierScratch::default());
            prop_assert_eq!(bits(&got.unwrap()), bits(&expected.unwrap()));
        }
    }
}

#[test]
fn classifiers_of_vectors_with_and_without_an_index() {
    let _emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    let values: Vec<f32> = (0..3 * 8).map(|i| (i * 37 % 23) as f32 / 11.0 - 1.0).collect();
    let queries = Rows::Dense(DenseRows::new(&values, 8));
    let mut of = params(Loss::Bce, &[], HeadParams::Dense, Activation::Relu, MatmulPrecision::F32);
    of.encoder = EncoderParams::vectors([10]);
    let mut classifier = Classifier::new(preset::DENSE, 8, 90, of).unwrap();
    let index =
        classifier.build_index(None, &xc_ann::BuildParams::new(xc_ann::Metric::InnerProduct), &xc_ann::Silent).unwrap();
    classifier.set_index(Some(index)).unwrap();
    let on_device = classifier.on(&device).unwrap();
    for only in [Only::All, Only::Near(xc_ann::Scope::width(30.0))] {
        let expected = classifier.predict(queries, 4, only, &mut ClassifierScratch::default()).unwrap();
        let got = on_device.predict(queries, 4, only, &mut ClassifierScratch::default()).unwrap();
        assert_eq!(bits(&got), bits(&expected));
    }
}

#[test]
fn what_has_no_answer_on_the_cpu_has_none_on_a_device() {
    let _emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    let of = params(Loss::Bce, &[9], HeadParams::Dense, Activation::Identity, MatmulPrecision::F32);
    let classifier = Classifier::new(preset::DENSE, N_FEATURES, 40, of).unwrap();
    let on_device = classifier.on(&device).unwrap();
    let x = CsrMatrix::from_checked((2, N_FEATURES), vec![0, 1, 2], vec![3, 4], vec![1.0, f32::INFINITY]);
    let expected = classifier.predict(Rows::Sparse(x.view()), 50, Only::All, &mut ClassifierScratch::default());
    let got = on_device.predict(Rows::Sparse(x.view()), 50, Only::All, &mut ClassifierScratch::default());
    assert_eq!(got.unwrap_err().to_string(), expected.unwrap_err().to_string());
    let narrow = CsrMatrix::from_checked((0, 3), vec![0], vec![], vec![]);
    let refused = on_device.predict(Rows::Sparse(narrow.view()), 1, Only::All, &mut ClassifierScratch::default());
    let width = PredictError::Width { got: 3, expected: N_FEATURES, unit: "features" };
    assert_eq!(refused, Err(DevicePredictError::Predict(width)));
}

fn mach(family: UniversalFamily, loss: Loss, decoder: Decoder, n_repetitions: u32) -> MachModel {
    let mut classifier = ClassifierParams { loss, encoder: EncoderParams::bag([8]), ..preset::mach().params };
    classifier.learning.init = EmbeddingInit::Random;
    let params = MachParams { n_buckets: 12, family, decoder, seed: 5, classifier };
    let repetitions = (0..n_repetitions).map(|number| Repetition::new(&params, N_FEATURES, number).unwrap()).collect();
    MachModel::new(params, N_FEATURES, 70, repetitions).unwrap()
}

#[test]
fn mach_models() {
    let emulated = Emulated::hold();
    let device = Arc::new(Device::open(0).unwrap());
    let x = features(5);
    let queries = Rows::Sparse(x.view());
    for (family, loss, seed) in
        [(UniversalFamily::Prime, Loss::Bce, 1), (UniversalFamily::MultiplyShift, Loss::Softmax, 2)]
    {
        emulated.set_seed(seed);
        let model = mach(family, loss, Decoder::Median, 5);
        let on_device = model.on(&device).unwrap();
        for decoder in Decoder::ALL {
            for k in [0, 1, 4, 80] {
                let asking = Asking { decoder: Some(decoder), ..Asking::top(k) };
                let expected = model.predict_batch(queries, &asking).unwrap();
                let got = on_device.predict_batch(queries, &asking).unwrap();
                assert_eq!(bits(&got.ranked), bits(&expected.ranked), "{family} {decoder} {k}");
                assert!(got.certificates.len() == 5 && got.certificates.iter().all(|c| c.exact));
            }
            let candidates = [1, 7, 60];
            let expected = model.predict_candidates(queries, |_| &candidates, 2, decoder).unwrap();
            let got = on_device.predict_candidates(queries, |_| &candidates, 2, decoder).unwrap();
            assert_eq!(bits(&got), bits(&expected), "{family} {decoder}");
        }
        let early = Asking { effort: Effort::Labels(9), ..Asking::top(3) };
        assert_eq!(on_device.predict_batch(queries, &early).unwrap(), model.predict_batch(queries, &early).unwrap());
        let nothing = CsrMatrix::from_checked((0, N_FEATURES), vec![0], vec![], vec![]);
        assert!(on_device.predict_batch(Rows::Sparse(nothing.view()), &Asking::top(3)).unwrap().ranked.is_empty());
        // An infinite sum of embeddings.
        let wild = CsrMatrix::from_checked((2, N_FEATURES), vec![0, 1, 3], vec![0, 3, 4], vec![1.0, 3e38, 3e38]);
        let refused = on_device.predict_batch(Rows::Sparse(wild.view()), &Asking::top(3)).map(|a| bits(&a.ranked));
        match model.predict_batch(Rows::Sparse(wild.view()), &Asking::top(3)) {
            Ok(answers) => assert_eq!(refused.unwrap(), bits(&answers.ranked)),
            Err(AnswerError::Scores { query, .. }) => {
                let is_same = matches!(refused, Err(DeviceAnswerError::Answer(AnswerError::Scores { query: got, .. })) if got == query);
                assert!(is_same, "{refused:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    let refused = mach(UniversalFamily::Tabulation, Loss::Bce, Decoder::Mean, 2).on(&device).unwrap_err();
    assert_eq!(refused, DeviceScanError::Family { family: UniversalFamily::Tabulation });
}
