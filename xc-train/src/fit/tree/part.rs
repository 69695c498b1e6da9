//! A part of the trees, which a process of its own trains.

use super::{Inputs, Tree, kept_parameters, packing_error, training_error};
use crate::fit::place::drop_checkpoint;
use crate::fit::report::Report;
use crate::fit::save::save_created;
use crate::fit::{Context, FitError, Outcome};
use crate::settings::SettingError;
use serde_json::{Map, json};
use std::time::Instant;
use xc_buffer::Part;
use xc_model::Extras;
use xc_model::message::counted;
use xc_store::{CheckpointFolder, ContainerWriter};
use xc_tree::{Negatives, PART_KIND, TreeParams, part_key, train_part};

/// Refuses what a part cannot have, before any data are read.
pub(super) fn check(part: Part, params: &TreeParams, is_judged: bool) -> Result<(), FitError> {
    if params.negatives != Negatives::TeacherForced {
        let why = "a part knows its own clusters only (--part); teacher-forced is expected with it";
        return Err(SettingError::of("negatives", why).into());
    }
    if is_judged {
        return Err(FitError::usage(format_args!(
            "--part {part}: a part is no model that could be judged; no --validation or --validation-fraction is \
             expected (`xc evaluate` judges what `xc merge` makes)"
        )));
    }
    Ok(())
}

/// Trains and saves a part.
pub(super) fn train(
    args: &Tree<'_>,
    part: Part,
    inputs: &Inputs,
    params: &TreeParams,
    folder: CheckpointFolder,
    (read_s, needed): (f64, u64),
    context: &Context<'_>,
) -> Result<Outcome, FitError> {
    let (place, data) = (&args.of.place, &inputs.instances.train);
    let start = Instant::now();
    let input = inputs.train_input();
    let checkpoint = folder.begin(part_key(&input, params, part))?;
    let watch = context.observer.of_trees();
    let trained = train_part(&input, params, part, &*watch, &checkpoint);
    drop(watch);
    let trained = trained.map_err(|e| training_error(args.of.source.name(), &e))?;
    let train_s = start.elapsed().as_secs_f64();
    context.check_interrupt()?;

    let start = Instant::now();
    let (training, rows) = (Some(kept_parameters(params)), Some(&inputs.rows));
    let extras =
        Extras { maker: data.maker.as_ref(), names: data.names.as_deref(), input: Some(&data.form), training, rows };
    let create = || ContainerWriter::create(&place.model, PART_KIND);
    save_created(create, extras, |writer| trained.write(writer).map_err(|e| packing_error(&e)))?;
    let save_s = start.elapsed().as_secs_f64();
    let (all, own) = trained.n_chunks();
    drop(trained);
    drop_checkpoint(checkpoint, context);
    let report = Box::new(Report {
        kind: xc_tree::KIND,
        model: place.model.clone(),
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
    });
    Ok(Outcome::Trained(report, None))
}
