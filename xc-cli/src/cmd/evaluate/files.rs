//! What is written beside the totals: a table of labels, and the rows that are answered worst.

use super::truth::Truth;
use crate::error::CliError;
use crate::output::Output;
use std::fmt::Write as _;
use xc_data::{AnswerNotes, push_csv_field, push_prediction_json};
use xc_metrics::{InstanceFigures, LabelCut, LabelFigures};
use xc_sparse::rank::RankedBatch;

/// Writes a row for each label that is true or predicted.
pub(super) fn write_labels(
    mut out: Output,
    labels: &[LabelFigures],
    ks: &[usize],
    has_threshold: bool,
    truth: &Truth,
) -> Result<(), CliError> {
    let mut header = "id,name,support".to_owned();
    let cuts = ks.iter().map(|k| format!("@{k}")).chain(has_threshold.then(String::new));
    for cut in cuts {
        let columns = ["predicted", "precision", "recall", "F1"];
        columns.iter().for_each(|column| header += &format!(",{column}{cut}"));
    }
    out.put(format!("{header},confused_id,confused_name,confused_times\n").as_bytes())?;
    let name = |line: &mut Vec<u8>, label: u32| {
        let name = truth.names.as_ref().and_then(|names| names.get(label as usize));
        line.push(b',');
        push_csv_field(line, name.map_or("", |name| name), b',');
    };
    let mut line = Vec::new();
    for figures in labels {
        line.clear();
        line.extend(figures.label.to_string().bytes());
        name(&mut line, figures.label);
        let mut numbers = format!(",{}", figures.support);
        for LabelCut { predicted, precision, recall, f1, .. } in figures.at_k.iter().chain(&figures.at_threshold) {
            // Writing to a string cannot fail.
            _ = write!(numbers, ",{predicted},{precision},{recall},{f1}");
        }
        line.extend(numbers.bytes());
        match figures.confused {
            Some((with, times)) => {
                line.extend(format!(",{with}").bytes());
                name(&mut line, with);
                line.extend(format!(",{times}").bytes());
            }
            None => line.extend(b",,,"),
        }
        line.push(b'\n');
        out.put(&line)?;
    }
    out.commit()
}

/// Writes an object for each of these instances.
pub(super) fn write_worst(
    mut out: Output,
    worst: &[InstanceFigures],
    k: usize,
    truth: &Truth,
    answers: &RankedBatch,
) -> Result<(), CliError> {
    let names = truth.names.as_deref();
    for figures in worst {
        let InstanceFigures { instance, precision, ndcg, recall } = *figures;
        let mut line = format!("{{\"instance\":{instance}");
        if let Some(id) = truth.ids.get(instance).and_then(Option::as_ref) {
            line += &format!(",\"id\":{}", id.as_json());
        }
        line += &format!(",\"nDCG@{k}\":{ndcg},\"P@{k}\":{precision},\"recall@{k}\":{recall}");
        let labels = truth.labels.row(instance);
        line += &format!(",\"true\":{}", serde_json::json!(labels));
        if let Some(names) = names {
            let named: Vec<&str> = labels.iter().map(|&l| names.get(l as usize).map_or("", |name| name)).collect();
            line += &format!(",\"true_names\":{}", serde_json::json!(named));
        }
        line.push(',');
        let mut answer = Vec::new();
        push_prediction_json(&mut answer, answers.row(instance), names, &AnswerNotes::default());
        out.put(line.as_bytes())?;
        out.put(&answer[1..])?;
    }
    out.commit()
}
