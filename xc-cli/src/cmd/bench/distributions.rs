//! `xc bench distributions`: what samplers choose, compared with what a network would.

use crate::context::Context;
use crate::data::without_mark;
use crate::error::{CliError, chain};
use crate::output;
use crate::plot::{Axis, Chart, Picture, Scale, Series, write_all};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;

/// Plot how the distributions of samplers change during training
///
/// Reads the output of the example sampler_distributions of xc-train. There is one chart for each
/// step that has points: the probabilities of the labels of one instance, most likely first, of the
/// network (target), of uniform sampling and of LSH. Below them is the total variation from the
/// target over the steps.
///
/// Examples:
///   xc bench distributions --input run.jsonl --output run.svg
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Output of the example
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// File for the plot, SVG
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// A step of a training run.
#[derive(Debug, Deserialize)]
struct Line {
    step: u64,
    variation: Variation,
    /// Rank; probabilities by the target, uniform, by the closed form of LSH, and its tables.
    points: Vec<[f64; 5]>,
}

/// Total variation from the target.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Variation {
    uniform: f64,
    closed: f64,
    tables: f64,
}

const UNIFORM: &str = "uniform";
const CLOSED: &str = "LSH, closed form";
const TABLES: &str = "LSH, tables";
const TARGET: &str = "target";

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    output::check(&args.output)?;
    let shown = args.input.display();
    let wrong = |why: String| CliError::usage(format_args!("{shown}: {why}"));
    let text = std::fs::read_to_string(&args.input).map_err(|e| wrong(chain(&e)))?;
    let read = |(at, line)| serde_json::from_str(line).map_err(|e| wrong(format!("line {}: {e}", at + 1)));
    let lines: Vec<Line> = without_mark(&text).lines().enumerate().map(read).collect::<Result<_, _>>()?;
    let moments: Vec<&Line> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    if moments.is_empty() {
        return Err(wrong("no points; expected what the example sampler_distributions writes".to_owned()));
    }
    draw(&lines, &moments, args)?;
    if context.json {
        let each = moments.iter().map(|line| json!({ "step": line.step, "variation": line.variation }));
        return output::print(&each.collect::<serde_json::Value>().to_string());
    }
    let mut text = format!("{:>8}  {UNIFORM:>16}  {CLOSED:>16}  {TABLES:>16}\n", "step");
    for Line { step, variation: Variation { uniform, closed, tables }, .. } in moments {
        text += &format!("{step:>8}  {uniform:>16.4}  {closed:>16.4}  {tables:>16.4}\n");
    }
    output::print(text.trim_end())
}

fn draw(lines: &[Line], moments: &[&Line], args: &Args) -> Result<(), CliError> {
    type Points = Vec<(f64, f64)>;
    fn chart<'a>(name: &'a str, scale: Scale, lines: &'a [(&'static str, Points)]) -> Chart<'a> {
        let series = lines.iter().map(|(name, points)| Series { name, points }).collect();
        Chart { y: Axis { name, scale }, series }
    }
    let of_moment = |line: &&Line| -> [(&'static str, Points); 4] {
        let points = |place: usize| line.points.iter().map(|point| (point[0], point[place])).collect();
        [(UNIFORM, points(2)), (CLOSED, points(3)), (TABLES, points(4)), (TARGET, points(1))]
    };
    let far = |of: fn(&Variation) -> f64| lines.iter().map(|line| (line.step as f64, of(&line.variation))).collect();
    let far = [(UNIFORM, far(|v| v.uniform)), (CLOSED, far(|v| v.closed)), (TABLES, far(|v| v.tables))];
    let names: Vec<String> = moments.iter().map(|line| format!("step {}", line.step)).collect();
    let of_moments: Vec<_> = moments.iter().map(of_moment).collect();
    let pictures = [
        Picture {
            title: "Probability of each label of one instance",
            x: Axis { name: "rank by the target", scale: Scale::Log },
            charts: names.iter().zip(&of_moments).map(|(name, lines)| chart(name, Scale::Log, lines)).collect(),
        },
        Picture {
            title: "Distance from the target",
            x: Axis { name: "step", scale: Scale::Linear },
            charts: vec![chart("total variation", Scale::Linear, &far)],
        },
    ];
    write_all(&pictures, &args.output).map_err(|e| CliError::unwritable(&e))
}
