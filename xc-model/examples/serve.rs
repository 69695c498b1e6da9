//! Answers texts with names of labels: `cargo run --release -p xc-model --example serve -- MODEL`,
//! then a text a line on stdin. MODEL is what `xc train` made of texts, such as the README's
//! `text.model`.

use std::io::{BufRead, Write};
use xc_model::{Answer, Model, QueryOptions, Row, Scratch};

/// Answers every line of `texts` with the names of its best labels.
pub(crate) fn serve(model: &Model, texts: impl BufRead, mut out: impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let names = model.label_names()?.ok_or("no label names in this model; train with --label-names")?;
    let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
    for text in texts.lines() {
        model.predict(&Row::Text(&text?), &QueryOptions::top(3), &mut scratch, &mut answer)?;
        let best = answer.labels.iter().map(|s| format!("{} {:.2}", names[s.label as usize], s.score));
        writeln!(out, "{}", best.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: serve MODEL")?;
    serve(&Model::open(folder)?, std::io::stdin().lock(), std::io::stdout())
}
