//! What is shown of a network's training.

use super::cost::Costs;
use crate::context::Context;
use crate::interrupt;
use crate::progress::Task;
use std::sync::{Mutex, PoisonError};
use xc_metrics::Metric;
use xc_nn::trainer::{Event, Keep, Observer};
use xc_sparse::Cancel;

/// Shows a network's training under way, and stops it on Ctrl-C.
pub(super) struct NetworkWatch<'a> {
    context: &'a Context,
    what: String,
    outputs: &'static str,
    selects: bool,
    task: Mutex<Option<Task>>,
    costs: Mutex<Costs>,
}

impl<'a> NetworkWatch<'a> {
    /// `what` names the network (`repetition 3: `), `outputs` what its outputs stand for; `keep`: whether
    /// the validation chooses the epoch whose parameters it has at the end.
    pub(super) fn new(context: &'a Context, what: String, outputs: &'static str, keep: Keep) -> Self {
        Self { context, what, outputs, selects: keep == Keep::Best, task: Mutex::default(), costs: Mutex::default() }
    }

    /// What the steps of this run took.
    pub(super) fn costs(&self) -> Costs {
        *self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cancel for NetworkWatch<'_> {
    fn cancelled(&self) -> bool {
        interrupt::interrupted()
    }
}

impl Observer for NetworkWatch<'_> {
    fn event(&self, event: Event<'_>) {
        let mut shown = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Resumed { epoch, step } => {
                self.context.note(format_args!("{}goes on in epoch {} after step {step}", self.what, epoch + 1));
            }
            Event::Step { epoch, step, n_steps, loss, instances_per_s, cost, .. } => {
                self.costs.lock().unwrap_or_else(PoisonError::into_inner).add(*cost);
                let task = shown.get_or_insert_with(|| self.context.task(&self.what, n_steps));
                task.say(format!("{}epoch {}, loss {loss:.4}, {instances_per_s:.0} instances/s", self.what, epoch + 1));
                task.set(step);
            }
            Event::Validated { epoch, validation, is_best, .. } => {
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
