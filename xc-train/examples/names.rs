//! Labels found by their own texts, as a member of a blend: `names TRAIN.jsonl LABEL-TEXTS.jsonl MODEL` writes the model, of which
//! `xc blend tree.fit MODEL --validation TRAIN.jsonl --held-out` makes one with a tree.

use std::error::Error;
use xc_data::{ReadOptions, read_text};
use xc_train::names::NamesFit;

#[allow(dead_code, reason = "a test calls what it calls")]
fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>())
}

pub(crate) fn run(args: &[String]) -> Result<(), Box<dyn Error>> {
    let [train, labels, model] = args else {
        return Err("TRAIN.jsonl LABEL-TEXTS.jsonl MODEL are expected".into());
    };
    let texts = |path: &String| Ok::<_, Box<dyn Error>>(read_text(path, &ReadOptions::default())?.texts);
    let (rows, labels) = (texts(train)?, texts(labels)?);
    Ok(NamesFit::default().fit(&rows, &labels, None)?.save(model)?)
}
