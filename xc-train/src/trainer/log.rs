//! The training log: one JSON object a line, and a picture of it.

use super::curve::Curve;
use super::evaluate::Validation;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// `log.jsonl` and `curve.svg` in a folder.
///
/// ```text
///   {"event":"step","step":200,"epoch":0,"loss":6.1,"rate":0.001,"instances_per_s":5210.0}
///   {"event":"validation","step":2048,"epoch":1,"loss":5.2,"P@1":0.31,"P@3":0.2,"P@5":0.15}
/// ```
pub(super) struct Log {
    folder: PathBuf,
    file: File,
    n_bytes: u64,
    curve: Curve,
}

/// A file of the log that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct LogError {
    /// The file or folder.
    pub path: PathBuf,
    /// The cause.
    pub source: std::io::Error,
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> LogError {
    let path = path.to_owned();
    move |source| LogError { path, source }
}

impl Log {
    /// Opens or makes the log and cuts it to the `n_bytes` that belong to the state training goes on from.
    pub(super) fn open(folder: &Path, n_bytes: u64) -> Result<Self, LogError> {
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        let path = folder.join("log.jsonl");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(at(&path))?;
        let mut open = || {
            // A log that was lost begins anew; what follows is right all the same.
            let n_bytes = n_bytes.min(file.metadata()?.len());
            file.set_len(n_bytes)?;
            file.seek(SeekFrom::Start(0))?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok((n_bytes, text))
        };
        let (n_bytes, text) = open().map_err(at(&path))?;
        let mut curve = Curve::default();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if let (Some(step), Some(loss)) = (line["step"].as_u64(), line["loss"].as_f64()) {
                curve.push(line["event"] == "validation", step, loss);
            }
        }
        Ok(Self { folder: folder.to_owned(), file, n_bytes, curve })
    }

    pub(super) fn step(&mut self, epoch: u32, step: u64, loss: f64, rate: f64, speed: f64) -> Result<(), LogError> {
        self.curve.push(false, step, loss);
        let speed = (speed * 10.0).round() / 10.0;
        self.line(&json!({"event": "step", "step": step, "epoch": epoch, "loss": loss, "rate": rate, "instances_per_s": speed}))
    }

    pub(super) fn validation(&mut self, epoch: u32, step: u64, met: &Validation) -> Result<(), LogError> {
        self.curve.push(true, step, met.loss);
        let [p1, p3, p5] = met.precision;
        self.line(&json!({"event": "validation", "step": step, "epoch": epoch, "loss": met.loss, "P@1": p1, "P@3": p3, "P@5": p5}))
    }

    fn line(&mut self, value: &Value) -> Result<(), LogError> {
        let line = format!("{value}\n");
        self.file.write_all(line.as_bytes()).map_err(at(&self.folder.join("log.jsonl")))?;
        self.n_bytes += line.len() as u64;
        Ok(())
    }

    /// Draws the picture.
    pub(super) fn draw(&self) -> Result<(), LogError> {
        let (path, partial) = (self.folder.join("curve.svg"), self.folder.join("curve.svg.partial"));
        std::fs::write(&partial, self.curve.svg()).and_then(|()| std::fs::rename(&partial, &path)).map_err(at(&path))
    }

    /// Has the lines so far written to the disk; gives their length.
    pub(super) fn sync(&mut self) -> Result<u64, LogError> {
        self.file.sync_data().map_err(at(&self.folder.join("log.jsonl")))?;
        Ok(self.n_bytes)
    }
}
