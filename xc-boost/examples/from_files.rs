//! Boosted trees over files of numbers: `from_files WIDTH TRAIN.f32 TRUTH.u8 TEST.f32 LOGITS.f32`; rows are little-endian,
//! WIDTH numbers each, a byte of truth for each row of TRAIN.

use std::error::Error;
use std::io::Write;
use std::time::Instant;
use xc_boost::{BoostParams, fit};
use xc_buffer::Silent;
use xc_dense::DenseRows;

fn numbers(path: &str) -> Result<Vec<f32>, Box<dyn Error>> {
    Ok(std::fs::read(path)?.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

#[allow(dead_code, reason = "a test calls what it calls")]
fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(args: &[String], said: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let [width, train, truth, test, out] = args else {
        return Err("WIDTH TRAIN.f32 TRUTH.u8 TEST.f32 LOGITS.f32 are expected".into());
    };
    let width: usize = width.parse()?;
    let (train, test) = (numbers(train)?, numbers(test)?);
    let is_yes: Vec<bool> = std::fs::read(truth)?.into_iter().map(|byte| byte != 0).collect();
    let all: Vec<u32> = (0..is_yes.len() as u32).collect();
    let start = Instant::now();
    let trees = fit(DenseRows::new(&train, width), &is_yes, &all, &BoostParams::default(), &Silent);
    writeln!(said, "{} rows of {width}, fitted in {:.2} s", is_yes.len(), start.elapsed().as_secs_f64())?;
    let mut logits = Vec::new();
    trees.ok_or("stopped")?.logits(DenseRows::new(&test, width), &mut logits);
    std::fs::write(out, logits.iter().flat_map(|logit| logit.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(())
}
