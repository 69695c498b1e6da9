//! Trains from arrays and answers, without a file: `cargo run -p xc-train --example in_memory`.

use std::error::Error;
use std::io::Write;
use xc_data::Data;
use xc_model::{Answer, QueryOptions, Row, Scratch};
use xc_sparse::LabelRows;
use xc_train::fit::{Context, Silent};
use xc_train::kinds::{FeatureParams, Fit, NetworkKind, TreeFit};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout())
}

/// Says which label a text gets, for two kinds of models.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let texts = ["audio library", "audio sound", "mail reader", "mail client"].map(str::to_owned).to_vec();
    let data = Data::new(texts, LabelRows::from_lists([[0], [0], [1], [1]], 2)?);
    let context = Context::new(&Silent).with_threads(2);
    let tree = TreeFit::default();
    let lns = NetworkKind::Lns.usual(&FeatureParams::default().shape(&data, &context)?)?;
    for kind in [&tree as &dyn Fit, &lns] {
        let fitted = kind.fit(&data, None, &context)?;
        let (mut scratch, mut best) = (Scratch::default(), Answer::default());
        fitted.model.predict(&Row::Text("a mail"), &QueryOptions::top(1), &mut scratch, &mut best)?;
        writeln!(out, "{}: {} of {}", fitted.report.kind, best.labels[0].label, fitted.report.what)?;
    }
    Ok(())
}
