//! Usual parameters of a kind, some of them changed; trained, asked, saved: `cargo run -p xc-train --example usual`.
use std::error::Error;
use xc_data::Data;
use xc_model::{Answer, QueryOptions, Row, Scratch};
use xc_sparse::LabelRows;
use xc_train::fit::{Context, Silent};
use xc_train::kinds::{FeatureParams, Fit, NetworkKind};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let texts = ["audio library", "audio sound", "mail reader", "mail client"].map(str::to_owned).to_vec();
    let data = Data::new(texts, LabelRows::from_lists([[0], [0], [1], [1]], 2)?);
    let context = Context::new(&Silent);
    let mut lns = NetworkKind::Lns.usual(&FeatureParams::default().shape(&data, &context)?)?;
    lns.network.classifier.encoder.widths_mut()[0] = 64;
    let fitted = lns.fit(&data, None, &context)?; // what is impossible is said by its place: training.epochs, ...
    let mut answer = Answer::default();
    fitted.model.predict(&Row::Text("a mail"), &QueryOptions::top(1), &mut Scratch::default(), &mut answer)?;
    assert_eq!(answer.labels[0].label, 1);
    Ok(fitted.model.save(tempfile::tempdir()?.path().join("my.model"))?)
}
