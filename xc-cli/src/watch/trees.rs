//! Shows training under way, and stops it on Ctrl-C.

use crate::allocator;
use crate::context::Context;
use crate::interrupt;
use crate::progress::Task;
use std::sync::{Mutex, PoisonError};
use xc_buffer::{Cancel, Observer};
use xc_tree::TreeEvent;

/// An observer that moves progress bars.
pub(crate) struct TreeWatch<'a> {
    context: &'a Context,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    tree: String,
    task: Option<Task>,
}

impl Shown {
    /// The task has come to its end.
    fn finish(&mut self) {
        self.task.take().into_iter().for_each(Task::finish);
    }
}

impl<'a> TreeWatch<'a> {
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, shown: Mutex::default() }
    }
}

impl Cancel for TreeWatch<'_> {
    fn cancelled(&self) -> bool {
        interrupt::interrupted()
    }
}

impl Observer<TreeEvent> for TreeWatch<'_> {
    fn event(&self, event: TreeEvent) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TreeEvent::Tree { tree, n_trees } => {
                shown.task = None;
                shown.tree = if n_trees > 1 { format!("tree {}/{n_trees}, ", tree + 1) } else { String::new() };
            }
            TreeEvent::Representing { n_labels } => {
                let what = format!("{}label vectors", shown.tree);
                shown.task = Some(self.context.task(&what, n_labels as u64));
            }
            TreeEvent::Clustering { n_labels } => {
                shown.finish();
                let what = format!("{}clustering labels", shown.tree);
                shown.task = Some(self.context.task(&what, n_labels as u64));
            }
            TreeEvent::Clustered { .. } => {
                shown.finish();
                allocator::give_back_small_arrays();
            }
            TreeEvent::Level { level, n_levels, n_rankers, resumed } => {
                shown.task = None;
                if resumed {
                    self.context.note(format_args!(
                        "{}level {}/{n_levels}: from the checkpoint",
                        shown.tree,
                        level + 1
                    ));
                } else {
                    let what = format!("{}level {}/{n_levels}", shown.tree, level + 1);
                    shown.task = Some(self.context.task(&what, n_rankers as u64));
                }
            }
            TreeEvent::OwnRankers { n_rankers } => {
                shown.task = Some(self.context.task("rankers of the wide term", n_rankers as u64));
            }
            TreeEvent::Rankers { done } => {
                if let Some(task) = &shown.task {
                    task.advance(done as u64);
                }
            }
            _ => {}
        }
    }
}
