//! A part of the trees, which a process of its own trains.

use super::{TreeSession, kept_parameters, packing_error, training_error};
use crate::fit::FitError;
use crate::fit::place::drop_checkpoint;
use crate::fit::report::Report;
use crate::fit::save::save_created;
use serde_json::{Map, json};
use std::time::Instant;
use xc_buffer::Part;
use xc_model::Extras;
use xc_model::message::counted;
use xc_store::{CheckpointFolder, ContainerWriter};
use xc_tree::{Negatives, PART_KIND, TreeParams, part_key, train_part};

/// Refuses what a part of trees cannot have, before any data are read.
///
/// # Errors
/// Parameters that look beyond a part, or instances that would judge it.
pub fn check_part(part: Part, params: &TreeParams, is_judged: bool) -> Result<(), FitError> {
    if params.negatives != Negatives::TeacherForced {
        return Err(FitError::usage(
            "--negatives: a part knows its own clusters only (--part); teacher-forced is expected with it",
        ));
    }
    if is_judged {
        return Err(FitError::usage(format_args!(
            "--part {part}: a part is no model that could be judged; no --validation or --validation-fraction is \
             expected (`xc evaluate` judges what `xc merge` makes)"
        )));
    }
    Ok(())
}

impl TreeSession<'_> {
    /// Trains a part of the trees, and saves it in the folder of the model.
    ///
    /// # Errors
    /// As [`TreeSession::run`].
    ///
    /// # Panics
    /// If the model is to stay in memory.
    pub fn run_part(&self, part: Part, folder: CheckpointFolder, read_s: f64) -> Result<Report, FitError> {
        let Self { source, target, params, inputs, context } = *self;
        let model = target.folder().unwrap_or_else(|| panic!("a part has a folder"));
        let (needed, data) = (self.begin()?, inputs.train());
        let start = Instant::now();
        let input = inputs.train_input();
        let checkpoint = folder.begin(part_key(&input, params, part))?;
        let watch = context.observer.of_trees();
        let trained = train_part(&input, params, part, &*watch, &checkpoint);
        drop(watch);
        let trained = trained.map_err(|e| training_error(source, &e))?;
        let train_s = start.elapsed().as_secs_f64();
        context.check_interrupt()?;

        let start = Instant::now();
        let (training, rows) = (Some(kept_parameters(params)), Some(&inputs.rows));
        let extras = Extras {
            maker: data.maker.as_ref(),
            names: data.names.as_deref(),
            input: Some(&data.form),
            training,
            rows,
        };
        let create = || ContainerWriter::create(model, PART_KIND);
        save_created(create, extras, |writer| trained.write(writer).map_err(|e| packing_error(&e)))?;
        let save_s = start.elapsed().as_secs_f64();
        let (all, own) = trained.n_chunks();
        drop(trained);
        drop_checkpoint(checkpoint, context);
        Ok(Report {
            kind: xc_tree::KIND,
            model: model.to_owned(),
            read_s,
            train_s,
            save_s,
            metrics: None,
            curve: Vec::new(),
            what: format!("part {part}: {own} of {} of the trees that it shares", counted(all, "chunk")),
            further: Map::from_iter([("memory".to_owned(), json!({ "total_bytes": needed }))]),
            logged: Map::from_iter([
                ("part".to_owned(), json!(part.to_string())),
                ("chunks".to_owned(), json!(own)),
                ("parameters".to_owned(), kept_parameters(params)),
            ]),
            data: Some(inputs.rows.fingerprint()),
        })
    }
}
