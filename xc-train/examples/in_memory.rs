//! Trains from arrays and answers, without a file: `cargo run -p xc-train --example in_memory`.

use std::error::Error;
use std::io::Write;
use xc_model::{Answer, QueryOptions, Row, Scratch};
use xc_sparse::LabelRows;
use xc_train::fit::{Context, Silent, Training};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut std::io::stdout())
}

/// Says which label a text gets, for two kinds of models.
pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let texts = ["audio library", "sound library", "mail reader", "mail client"].map(str::to_owned).to_vec();
    let labels = LabelRows::from_lists([[0], [0], [1], [1]], 2)?;
    for kind in ["tree", "lns"] {
        let mut training = Training::new(kind, (texts.clone(), labels.clone()), "")?;
        training.set("text.min-df", "1")?;
        let fitted = training.fit(&Context::new(&Silent).with_threads(2))?;
        let (mut scratch, mut best) = (Scratch::default(), Answer::default());
        fitted.model.predict(&Row::Text("a mail"), &QueryOptions::top(1), &mut scratch, &mut best)?;
        writeln!(out, "{kind}: {} of {}", best.labels[0].label, fitted.report.what)?;
    }
    Ok(())
}
