#![allow(clippy::print_stdout, missing_docs)]
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};
use xc_sparse::LabelRows;
use xc_sparse::io::{ReadOptions, read_dataset, read_npy};
use xc_sparse::uniform::NumberType;
use xc_train::encoder::{Bag, Precomputed, Stack};
use xc_train::head::Sparse;
use xc_train::head::sparse::{EvenNegatives, Rewire, SparseParams};
use xc_train::loss::{Bce, SquaredHinge};
use xc_train::optim::Adam;
use xc_train::schedule::HalveOnPlateau;
use xc_train::trainer::{Event, Judge, Keep, Observer, PatienceFrom, Sample, evaluate};
use xc_train::*;

struct Tell(Instant, std::sync::Mutex<f64>);
impl Observer for Tell {
    fn event(&self, event: Event<'_>) {
        if let Event::Validated { step, validation, is_best } = event {
            println!("  {:.0} s step {step} {validation:?} {is_best}", self.0.elapsed().as_secs_f64());
        }
    }
}
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find(|l| l.starts_with(what)).and_then(|l| l.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
        / 1024
}
fn go<E: Encoder, H: Head>(
    mut network: Network<E, H>,
    train: &Examples<'_>,
    test: &Examples<'_>,
    o: &HashMap<String, String>,
    loss: &dyn Loss,
) {
    let get = |k: &str, d: f64| o.get(k).map_or(d, |v| v.parse().unwrap());
    let batch = get("batch", 256.0) as usize;
    // Biases: at the prior, a little below the margin.
    let mut counts = vec![0u32; network.head().n_outputs()];
    (0..train.len()).for_each(|i| train.targets().row(i).iter().for_each(|&l| counts[l as usize] += 1));
    let n = train.len() as f64;
    for named in network.parameters_mut().into_iter().filter(|n| n.name == "head.bias") {
        for (b, &c) in named.parameter.values_mut().iter_mut().zip(&counts) {
            *b = if loss.name() == "bce" {
                ((f64::from(c) + 0.5) / (n - f64::from(c) + 0.5)).ln() as f32
            } else {
                (-1.0 - get("below", 0.1) + 2.0 * f64::from(c) / n) as f32
            };
        }
    }
    let (sample, validation) = Sample::split(*train, 0.1, 1);
    let mut schedule = HalveOnPlateau::new(1).judged_by(Judge::Precision3).down_to(0.1);
    let began = Instant::now();
    let tell = Tell(began, std::sync::Mutex::new(0.0));
    let mut trainer = Trainer {
        loss,
        optimizer: &Adam::default(),
        schedule: &mut schedule,
        params: TrainParams {
            batch_size: batch,
            epochs: get("epochs", 10.0) as u32,
            rate: get("rate", 1e-3),
            seed: 1,
            patience: Some(1),
            patience_from: PatienceFrom::LowestRate,
            judge: Judge::Precision3,
            keep: Keep::Best,
            ..Default::default()
        },
        checkpoint: None,
        log: None,
        observer: &tell,
    };
    let summary = trainer.train(&mut network, &sample, Some(&validation)).unwrap();
    let took = began.elapsed();
    let mut room = Workspace::default();
    let on = |s: &Sample<'_>, room: &mut Workspace<E, H>| {
        let v = evaluate(&network, s, loss, batch, room);
        v.precision.map(|p| (p * 1e4).round() / 100.0)
    };
    let sub = Sample::split(*train, 0.1, 77).1;
    println!(
        "RESULT {o:?}\n  test {:?} train {:?} epochs {} best {:?} s/epoch {:.1} values {} anon {} MiB peakrss {} MiB",
        on(&Sample::all(*test), &mut room),
        on(&sub, &mut room),
        summary.epochs,
        summary.best.map(|b| b.0),
        took.as_secs_f64() / f64::from(summary.epochs.max(1)),
        network.n_values(),
        memory("RssAnon"),
        memory("VmHWM")
    );
    let _ = Duration::ZERO;
}
fn main() {
    let o: HashMap<String, String> = std::env::args()
        .skip(1)
        .map(|a| {
            let (k, v) = a.split_once('=').unwrap();
            (k.to_owned(), v.to_owned())
        })
        .collect();
    let get = |k: &str, d: &str| o.get(k).cloned().unwrap_or_else(|| d.to_owned());
    let set = get("set", "debian-depends");
    let options = ReadOptions::default();
    let read = |name: &str| read_dataset(Path::new(&format!("/root/featx/{set}/{name}.txt")), &options).unwrap();
    let (train, test) = (read("train"), read("test"));
    let n_labels = train.labels.n_labels().max(test.labels.n_labels());
    let widen = |l: &LabelRows| l.clone().with_n_labels(n_labels);
    let (ytr, yte) = (widen(&train.labels), widen(&test.labels));
    let lsa = |name: &str| read_npy(Path::new(&format!("/root/featx/lsa/{set}/{name}.npy")), &options);
    let hidden: usize = get("h", "0").parse().unwrap();
    let s: usize = get("s", "32").parse().unwrap();
    let dropout: f32 = get("dropout", "0.1").parse().unwrap();
    let of = |k: &str| match &*get(k, "f32") {
        "f32" => NumberType::F32,
        "bf16" => NumberType::Bf16,
        "f16" => NumberType::F16,
        "e4m3" => NumberType::E4m3,
        "e5m2" => NumberType::E5m2,
        x => panic!("{x}"),
    };
    let every: u64 = 32_000 / get("batch", "256").parse::<u64>().unwrap();
    let loss: &dyn Loss = if get("loss", "sqh") == "bce" { &Bce } else { &SquaredHinge };
    let head = |width: usize| {
        let params = SparseParams {
            per_output: s,
            uniform: get("kind", "uniform") == "uniform",
            weights: of("weights"),
            moments: of("moments"),
            rewire: Some(Rewire { every, fraction: get("fraction", "0.1").parse().unwrap() }),
        };
        let negatives =
            o.get("negatives").map(|n| std::sync::Arc::new(EvenNegatives { per_step: n.parse().unwrap() }) as _);
        Sparse::new(n_labels, width, params, First::Drawn { seed: 1 }).unwrap().with_negatives(negatives)
    };
    let dense = get("kind", "uniform") == "dense";
    if get("x", "lsa") == "lsa" {
        let (xtr, xte) = (lsa("train").unwrap(), lsa("test").unwrap());
        let width = xtr.columns;
        let (a, b) = (
            Examples::try_new(Features::Dense(DenseRows::new(&xtr.values, width)), &ytr).unwrap(),
            Examples::try_new(Features::Dense(DenseRows::new(&xte.values, width)), &yte).unwrap(),
        );
        let mut e = Stack::new(Precomputed::new(width).with_dropout(dropout));
        if hidden > 0 {
            e = e.push(hidden, Activation::Relu, 0.0, 1);
        }
        let w = e.width();
        if dense {
            go(Network::new(e, head::Dense::new(n_labels, w, 1)), &a, &b, &o, loss)
        } else {
            go(Network::new(e, head(w)), &a, &b, &o, loss)
        }
    } else {
        let rows = |d: &xc_sparse::Dataset| d.features.clone();
        let (xtr, xte) = (rows(&train), rows(&test));
        let nf = xtr.cols().max(xte.cols());
        let fix = |m: xc_sparse::CsrMatrix| {
            let r = m.rows();
            let (p, i, v) = m.into_raw_storage();
            xc_sparse::CsrMatrix::new((r, nf), p, i, v)
        };
        let (xtr, xte) = (fix(xtr), fix(xte));
        let (a, b) = (
            Examples::try_new(Features::Sparse(xc_sparse::Rows::new(xtr.view())), &ytr).unwrap(),
            Examples::try_new(Features::Sparse(xc_sparse::Rows::new(xte.view())), &yte).unwrap(),
        );
        let mut e = Stack::new(Bag::new(nf, get("w", "512").parse().unwrap(), Activation::Relu, dropout, 1));
        if hidden > 0 {
            e = e.push(hidden, Activation::Relu, get("dropout2", "0").parse().unwrap(), 1);
        }
        let w = e.width();
        if dense {
            go(Network::new(e, head::Dense::new(n_labels, w, 1)), &a, &b, &o, loss)
        } else {
            go(Network::new(e, head(w)), &a, &b, &o, loss)
        }
    }
}
