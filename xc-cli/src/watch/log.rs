//! The training log: one JSON object a line, and a picture of it.

use crate::context::Context;
use crate::error::chain;
use crate::measure::cpu_s;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use xc_buffer::{Cancel, Observer};
use xc_metrics::Metric;
use xc_nn::trainer::{Monitor, TrainEvent, Validation};
use xc_options::plot::{Axis, Chart, Picture, Scale, Series};
use xc_train::fit::{Costs, FitError};

/// Writes `log.jsonl` and `curve.svg` in a folder.
///
/// ```text
///   {"event":"step","step":200,"epoch":0,"wall_s":9.8,"cpu_s":19.1,"loss":6.1,"rate":0.001,"instances_per_s":5210.0}
///   {"event":"step",...,"cost":{"ms":{"encode":1.2,...},"per_step":{"rows_read":2310.0,...}}}      where the head counts
///   {"event":"validation","step":2048,"epoch":1,"wall_s":9.1,"cpu_s":17.9,"loss":5.2,"P@1":0.31,...}
///   {"event":"saved","step":2100,"wall_s":9.3,"cpu_s":18.3,"losses":310.2,"n_losses":52}
/// ```
///
/// The loss of a step's line is the mean since the line before. `wall_s` and `cpu_s` are the time of
/// the training up to there: initial values and steps, but neither validation nor what an
/// interrupted run did after its last checkpoint. What belongs to no line yet when a
/// checkpoint is saved is kept in a line of its own: a training run that goes on from there writes the
/// lines that it would have written.
pub(crate) struct Log<'a> {
    every: u64,
    context: &'a Context,
    /// Nothing once it could not be written: the training goes on.
    lines: Mutex<Option<Lines>>,
}

struct Lines {
    folder: PathBuf,
    file: File,
    curve: Curve,
    /// Whether the lines of other training runs have been cut off.
    begun: bool,
    losses: f64,
    n_losses: u64,
    /// Of the steps since the last line, in this run.
    costs: Costs,
    clock: Clock,
}

/// Time of the training.
struct Clock {
    wall_s: f64,
    cpu_s: f64,
    /// When it was last looked at.
    wall: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> Self {
        Self { wall_s: 0.0, cpu_s: 0.0, wall: Instant::now(), cpu: cpu_s().unwrap_or(0.0) }
    }

    /// Time since it was looked at last, which belongs to the training or not.
    fn look(&mut self, counts: bool) {
        let (wall, cpu) = (Instant::now(), cpu_s().unwrap_or(0.0));
        if counts {
            self.wall_s += (wall - self.wall).as_secs_f64();
            self.cpu_s += cpu - self.cpu;
        }
        (self.wall, self.cpu) = (wall, cpu);
    }
}

/// To microseconds: lines of single steps tell their times.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// What `curve.svg` shows, over steps.
struct Curve {
    training: Vec<(f64, f64)>,
    validation: Vec<(f64, f64)>,
    /// The monitored metric, or P@1 where the loss is monitored.
    metric: Metric,
    metrics: Vec<(f64, f64)>,
}

impl<'a> Log<'a> {
    /// Opens or makes the log; a step's line is written every `every` steps and after each epoch.
    pub(crate) fn open(folder: &Path, every: u64, monitor: Monitor, context: &'a Context) -> Result<Self, FitError> {
        let path = folder.join("log.jsonl");
        let open = || {
            std::fs::create_dir_all(folder)?;
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)
        };
        let file = open().map_err(|e| FitError::unwritable_at(&path, e))?;
        let metric = if let Monitor::Metric(metric) = monitor { metric } else { Metric::Precision(1) };
        let curve = Curve { training: Vec::new(), validation: Vec::new(), metric, metrics: Vec::new() };
        let folder = folder.to_owned();
        let lines = Lines {
            folder,
            file,
            curve,
            begun: false,
            losses: 0.0,
            n_losses: 0,
            costs: Costs::default(),
            clock: Clock::start(),
        };
        Ok(Self { every, context, lines: Mutex::new(Some(lines)) })
    }

    /// Does something with the log, unless that failed before.
    fn with(&self, work: impl FnOnce(&mut Lines) -> io::Result<()>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &mut *lines
            && let Err(e) = work(open)
        {
            let folder = open.folder.display();
            self.context.warn(format_args!("{folder}: {}; the training goes on without a log", chain(&e)));
            *lines = None;
        }
    }
}

impl Cancel for Log<'_> {}

impl Observer<TrainEvent<'_>> for Log<'_> {
    fn event(&self, event: TrainEvent<'_>) {
        self.with(|lines| match event {
            TrainEvent::Resumed { step, .. } => lines.cut(step),
            TrainEvent::Step { epoch, step, end_of_epoch, loss, rate, instances_per_s, cost, .. } => {
                lines.clock.look(true);
                if !lines.begun {
                    lines.cut(0)?;
                }
                lines.losses += loss;
                lines.n_losses += 1;
                lines.costs.add(*cost);
                if step.is_multiple_of(self.every) || end_of_epoch {
                    lines.step(epoch, step, rate, instances_per_s)?;
                }
                Ok(())
            }
            TrainEvent::Validated { epoch, step, validation, .. } => {
                lines.clock.look(false);
                lines.validation(epoch, step, validation)?;
                lines.draw()
            }
            TrainEvent::Saving { step } => lines.line(&json!({
                "event": "saved", "step": step, "wall_s": lines.clock.wall_s, "cpu_s": lines.clock.cpu_s,
                "losses": lines.losses, "n_losses": lines.n_losses
            })),
            _ => Ok(()),
        });
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        self.with(|lines| if lines.begun { lines.draw() } else { Ok(()) });
    }
}

impl Lines {
    /// Cuts off the lines after a step. A log that was lost begins anew; what follows is right all
    /// the same.
    fn cut(&mut self, step: u64) -> io::Result<()> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_string(&mut text)?;
        let mut kept = 0;
        for line in text.split_inclusive('\n') {
            let Ok(value) = serde_json::from_str::<Value>(line) else { break };
            match value["step"].as_u64() {
                Some(at) if at <= step && line.ends_with('\n') => {}
                _ => break,
            }
            kept += line.len() as u64;
            if value["event"] == "saved" {
                let saved = (value["losses"].as_f64(), value["n_losses"].as_u64());
                (self.losses, self.n_losses) = (saved.0.unwrap_or(0.0), saved.1.unwrap_or(0));
                let time = |name: &str| value[name].as_f64().unwrap_or(0.0);
                (self.clock.wall_s, self.clock.cpu_s) = (time("wall_s"), time("cpu_s"));
                continue;
            }
            if value["event"] == "step" {
                (self.losses, self.n_losses) = (0.0, 0);
            }
            if let (Some(at), Some(loss)) = (value["step"].as_u64(), value["loss"].as_f64()) {
                let is_validation = value["event"] == "validation";
                let losses = if is_validation { &mut self.curve.validation } else { &mut self.curve.training };
                losses.push((at as f64, loss));
                let metric = value[self.curve.metric.to_string()].as_f64();
                self.curve.metrics.extend(metric.map(|metric| (at as f64, metric)));
            }
        }
        self.file.set_len(kept)?;
        self.file.seek(SeekFrom::Start(kept))?;
        self.begun = true;
        Ok(())
    }

    fn step(&mut self, epoch: u32, step: u64, rate: f64, speed: f64) -> io::Result<()> {
        let loss = self.losses / self.n_losses as f64;
        (self.losses, self.n_losses) = (0.0, 0);
        self.curve.training.push((step as f64, loss));
        let speed = (speed * 10.0).round() / 10.0;
        let mut line = json!({
            "event": "step", "step": step, "epoch": epoch, "wall_s": micros(self.clock.wall_s),
            "cpu_s": micros(self.clock.cpu_s), "loss": loss, "rate": rate, "instances_per_s": speed
        });
        if let Some(costs) = std::mem::take(&mut self.costs).json() {
            line["cost"] = costs;
        }
        self.line(&line)
    }

    fn validation(&mut self, epoch: u32, step: u64, validation: &Validation) -> io::Result<()> {
        self.curve.validation.push((step as f64, validation.loss));
        let metric = validation.metrics.value(self.curve.metric);
        self.curve.metrics.extend(metric.map(|metric| (step as f64, metric)));
        let mut line = json!({
            "event": "validation", "step": step, "epoch": epoch, "wall_s": micros(self.clock.wall_s),
            "cpu_s": micros(self.clock.cpu_s), "loss": validation.loss
        });
        for metric in validation.metrics.values() {
            line[metric.metric.to_string()] = json!(metric.value);
        }
        self.line(&line)
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        self.file.write_all(format!("{value}\n").as_bytes())
    }

    /// Draws the picture.
    fn draw(&self) -> io::Result<()> {
        self.curve.write(&self.folder.join("curve.svg"))
    }
}

impl Curve {
    /// Losses, and the metric below them once there is one.
    fn write(&self, path: &Path) -> io::Result<()> {
        let linear = |name| Axis { name, scale: Scale::Linear };
        let metric = self.metric.to_string();
        let name = format!("validation {metric}");
        let lines = [
            ("loss", Series { name: "training loss", points: &self.training }),
            ("loss", Series { name: "validation loss", points: &self.validation }),
            (&metric, Series { name: &name, points: &self.metrics }),
        ];
        let lines: Vec<_> = lines.into_iter().filter(|(_, line)| !line.points.is_empty()).collect();
        let of_one_axis = lines.chunk_by(|a, b| a.0 == b.0);
        let charts = of_one_axis
            .map(|lines| Chart { y: linear(lines[0].0), series: lines.iter().map(|l| l.1).collect() })
            .collect();
        Picture { title: "Training", x: linear("step"), charts }.write(path).map_err(|error| error.source)
    }
}
