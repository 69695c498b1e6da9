//! What is shown of a network's training.

use crate::context::Context;
use crate::interrupt;
use crate::progress::Task;
use std::sync::{Mutex, PoisonError};
use xc_buffer::{Cancel, Observer};
use xc_metrics::Metric;
use xc_nn::trainer::TrainEvent;
use xc_train::fit::NetworkRun;

/// Shows a network's training under way, and stops it on Ctrl-C.
pub(crate) struct NetworkWatch<'a> {
    context: &'a Context,
    what: String,
    outputs: &'static str,
    selects: bool,
    task: Mutex<Option<Task>>,
}

impl<'a> NetworkWatch<'a> {
    pub(crate) fn new(context: &'a Context, run: &NetworkRun<'_>) -> Self {
        let NetworkRun { what, outputs, selects, .. } = *run;
        Self { context, what: what.to_owned(), outputs, selects, task: Mutex::default() }
    }
}

impl Cancel for NetworkWatch<'_> {
    fn cancelled(&self) -> bool {
        interrupt::interrupted()
    }
}

impl Observer<TrainEvent<'_>> for NetworkWatch<'_> {
    fn event(&self, event: TrainEvent<'_>) {
        let mut shown = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TrainEvent::Resumed { epoch, step } => {
                self.context.note(format_args!("{}goes on in epoch {} after step {step}", self.what, epoch + 1));
            }
            TrainEvent::Step { epoch, step, n_steps, loss, instances_per_s, .. } => {
                let task = shown.get_or_insert_with(|| self.context.task(&self.what, n_steps));
                task.say(format!("{}epoch {}, loss {loss:.4}, {instances_per_s:.0} instances/s", self.what, epoch + 1));
                task.set(step);
            }
            TrainEvent::Validated { epoch, validation, is_best, .. } => {
                let p1 = validation.metrics.value(Metric::Precision(1)).unwrap_or(0.0);
                let say = || {
                    self.context.note(format_args!(
                        "{}epoch {}, {}: loss {:.4}, P@1 of {} {:.2}%{}",
                        self.what,
                        epoch + 1,
                        if self.selects { "model selection by validation" } else { "validation" },
                        validation.loss,
                        self.outputs,
                        100.0 * p1,
                        if is_best { ", the best so far" } else { "" }
                    ));
                };
                match &*shown {
                    Some(task) => task.aside(say),
                    None => say(),
                }
            }
            _ => {}
        }
    }
}
