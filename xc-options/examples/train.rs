//! Trains a model of any kind from arrays: `cargo run --release -p xc-options --example train -- lns my.model`.

use std::io::Write;
use xc_sparse::LabelRows;
use xc_train::fit::Silent;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, model] = &arguments[..] else { return Err("expected: KIND MODEL".into()) };
    let texts = ["audio library", "audio player", "mail reader", "mail client"].map(str::to_owned).to_vec();
    let labels = LabelRows::from_lists([[0], [0], [1], [1]], 2)?;
    let report = xc_options::fit(kind, (texts, labels), &[("text.min-df", "1")], model, &Silent)?;
    writeln!(std::io::stdout(), "{}: {}", report.model.display(), report.what)?;
    Ok(())
}
