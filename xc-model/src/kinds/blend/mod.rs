//! Blends as a kind of model: the models inside a model, queried one after the other.

mod members;
mod write;

pub use members::{MAX_MEMBERS, MembersError};
pub use write::write_blend;

use crate::blend::{self, DEPTH, FeatureScale, Features, OpenRuleError, Rule, RuleScratch, below, candidates};
use crate::kind::{Answering, Ask, Cell, Check, InfoTable, Kind, ModelShape, Opened, Told};
use crate::open::open_inside;
use crate::query::{Answers, BatchError, Candidates, QueryError, QueryOptions};
use crate::{Answer, Model, OpenModelError, OpenOptions, OwnedRows, Row, Rows, TrainingRows, TrainingRowsError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use thiserror::Error;
use xc_buffer::parallel::in_pool;
use xc_sparse::rank::{LabelId, RankedBatch, Scored, rank_order};
use xc_store::{Container, ContainerWriter, OpenError, OpenMode, WriteError, member_folder};

pub(crate) const BLEND: Kind = Kind::standard(blend::KIND, open, tables);

const MEMBERS: &str = "members";
const SCALES: &str = "scales";
const LABEL_COUNTS: &str = "label_counts";
const MEAN: &str = "features.mean";
const FACTOR: &str = "features.factor";

/// What the folder of a blend states about a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: String,
    /// Hash of its configuration.
    xxh3: String,
}

/// Why the folder of a blend cannot be opened.
#[derive(Debug, Error)]
enum OpenBlendError {
    #[error(transparent)]
    Container(#[from] OpenError),
    #[error("{}: {got} members; between 1 and {MAX_MEMBERS} are expected", path.display())]
    Number { path: PathBuf, got: usize },
    #[error("{}: another model than the one that was blended", path.display())]
    Replaced { path: PathBuf },
    #[error(transparent)]
    Members(#[from] MembersError),
    #[error("{}: {labels} labels; its members have {expected}", path.display())]
    Labels { path: PathBuf, labels: usize, expected: usize },
    #[error("{}: {scales} scales for {members} members", path.display())]
    Scales { path: PathBuf, scales: usize, members: usize },
    #[error("{}: array {array}: value {at} is not finite", path.display())]
    NotFinite { path: PathBuf, array: &'static str, at: usize },
    #[error(transparent)]
    Rule(#[from] OpenRuleError),
}

/// Models, and the rule that ranks their answers.
pub(crate) struct Blend {
    members: Vec<Model>,
    features: Features,
    rule: Rule,
}

impl Blend {
    /// Its members.
    pub(crate) fn members(&self) -> &[Model] {
        &self.members
    }

    /// The same, to be put on a device.
    #[cfg(feature = "cuda")]
    pub(crate) fn members_mut(&mut self) -> &mut [Model] {
        &mut self.members
    }

    /// Ranks the candidates of `n` queries, of which each member gave its answers. `finish` gets the ranked list of each
    /// and the lists of the members.
    fn rank(
        &self,
        answers: &[RankedBatch],
        n: usize,
        finish: impl Fn(&mut Vec<Scored>, &[&[Scored]], &mut Rest) + Sync,
    ) -> RankedBatch {
        let part = |part: usize| {
            let rows = part * TOGETHER..n.min((part + 1) * TOGETHER);
            let lists = rows.map(|row| answers.iter().map(|answers| answers.row(row)).collect());
            let lists: Vec<Vec<&[Scored]>> = lists.collect();
            let (mut scratch, mut ranked, mut rest) = <(RuleScratch, Vec<Scored>, Rest)>::default();
            let (mut out, mut of_row) = (RankedBatch::new(), lists.iter());
            self.rule.rank(&self.features, lists.iter().map(|lists| &lists[..]), &mut scratch, |row| {
                row.clone_into(&mut ranked);
                // Each ranked row belongs to the next element of `lists`.
                of_row.next().into_iter().for_each(|lists| finish(&mut ranked, lists, &mut rest));
                out.push_row(&ranked);
            });
            out
        };
        let parts = 0..n.div_ceil(TOGETHER);
        let parts: Vec<RankedBatch> =
            if in_pool() { parts.into_par_iter().map(part).collect() } else { parts.map(part).collect() };
        let mut ranked = RankedBatch::new();
        parts.iter().for_each(|part| ranked.append(part));
        ranked
    }

    /// The score of a label for queries, as each member made their rows, or the one row that all of them are to it; a query
    /// for which no member has it among the best has none. The candidates are those of the first query, and the label.
    pub(crate) fn score_of(&self, label: LabelId, rows: &[OwnedRows]) -> Result<RankedBatch, QueryError> {
        let options = QueryOptions { made: true, ..QueryOptions::top(DEPTH) };
        let mut fixed = vec![label];
        for (member, rows) in self.members.iter().zip(rows) {
            let first = member.ranked(&rows.view().select(&[0]), &options)?;
            fixed.extend(first.row(0).iter().map(|s| s.label));
        }
        let options = QueryOptions { candidates: Candidates::Labels(&fixed), ..options };
        let n = rows.iter().map(OwnedRows::len).max().unwrap_or(0);
        let asked = self.members.iter().zip(rows).map(|(member, rows)| {
            let answers = member.ranked(rows, &options)?;
            let mut all = RankedBatch::new();
            (0..n).for_each(|row| all.push_row(answers.row(if rows.len() == 1 { 0 } else { row })));
            Ok(all)
        });
        let answers: Vec<RankedBatch> = asked.collect::<Result<_, QueryError>>()?;
        Ok(self.rank(&answers, n, |ranked, _, _| ranked.retain(|s| s.label == label)))
    }

    /// Bytes of the members' array files.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.members.iter().map(|member| member.describe().n_bytes).sum()
    }

    /// The rows that its members were trained on; `None` unless all members state theirs.
    pub(crate) fn training_rows(&self, n_labels: usize) -> Result<Option<TrainingRows>, TrainingRowsError> {
        let parts: Option<Vec<TrainingRows>> =
            self.members.iter().map(Model::training_rows).collect::<Result<_, _>>()?;
        Ok(parts.map(|parts| TrainingRows::union(&parts, n_labels)))
    }
}

fn open(container: Container, options: &OpenOptions, check: Check) -> Result<(Opened, Container), OpenModelError> {
    let failed = |error: OpenBlendError| OpenModelError::system(error);
    let entries: Vec<Entry> = container.parameter(MEMBERS)?;
    if entries.is_empty() || entries.len() > MAX_MEMBERS {
        let (path, got) = (container.folder().to_owned(), entries.len());
        return Err(failed(OpenBlendError::Number { path, got }));
    }
    let mut members = Vec::with_capacity(entries.len());
    for (number, entry) in entries.iter().enumerate() {
        let inside = open_inside(&container, &member_folder(number), options.mode)?;
        if inside.config_hash() != entry.xxh3 || inside.kind() != entry.kind {
            return Err(failed(OpenBlendError::Replaced { path: inside.folder().to_owned() }));
        }
        // Checked before it is opened: blends inside blends could be opened without end.
        members::check_kind(&inside).map_err(|e| failed(e.into()))?;
        let options = OpenOptions { repetitions: None, ..options.clone() };
        members.push(Model::of_container(inside, &options, check)?);
    }
    let warnings = members.iter_mut().flat_map(|member| std::mem::take(&mut member.warnings)).collect();
    members::check_alike(&members).map_err(|e| failed(e.into()))?;
    let blend = parts(&container, members, check).map_err(failed)?;
    Ok((Opened { warnings, ..Opened::new(blend) }, container))
}

fn parts(container: &Container, members: Vec<Model>, check: Check) -> Result<Blend, OpenBlendError> {
    let path = || container.folder().to_owned();
    let scales: Vec<FeatureScale> = container.parameter(SCALES)?;
    if scales.len() != members.len() {
        return Err(OpenBlendError::Scales { path: path(), scales: scales.len(), members: members.len() });
    }
    let label_counts = container.array::<u32>(LABEL_COUNTS)?.to_vec();
    let (labels, expected) = (label_counts.len(), members[0].shape.n_labels);
    if labels != expected {
        return Err(OpenBlendError::Labels { path: path(), labels, expected });
    }
    let features = Features::new(scales, label_counts);
    let n = features.n();
    let read = |array: &'static str| -> Result<Vec<f32>, OpenBlendError> {
        let values = container.array_shaped::<f32>(array, &[n])?.to_vec();
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(OpenBlendError::NotFinite { path: path(), array, at }),
            None => Ok(values),
        }
    };
    let features = features.with_standard(read(MEAN)?, read(FACTOR)?);
    let rule = Rule::of(container, n, check == Check::Structure)?;
    Ok(Blend { members, features, rule })
}

/// The members, as their configurations state them.
fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let entries: Vec<Entry> = container.parameter(MEMBERS)?;
    let row = |(number, entry): (usize, &Entry)| -> Result<Vec<Cell>, OpenModelError> {
        let inside = open_inside(container, &member_folder(number), OpenMode::Map)?;
        let name = crate::standard().iter().find(|kind| kind.name == inside.kind()).map_or("unknown", |kind| kind.name);
        let state = if inside.config_hash() == entry.xxh3 { "whole" } else { "replaced" };
        let features = if inside.pipeline().is_some() { "made by its pipeline" } else { "as they come" };
        Ok([Cell::Count(number as u64), Cell::Text(name), Cell::Bytes(inside.n_bytes())]
            .into_iter()
            .chain([Cell::Text(features), Cell::Text(state)])
            .collect())
    };
    let rows = entries.iter().enumerate().map(row).collect::<Result<_, _>>()?;
    let columns = ["member", "kind", "bytes", "features", "state"].to_vec();
    Ok(vec![InfoTable { name: "members", note: "", columns, rows }])
}

/// The models inside a model; none unless it is a blend. Lost parts that their kinds can do without
/// are tolerated.
///
/// # Errors
/// A member is absent or its configuration damaged.
pub fn members(container: &Container) -> Result<Vec<Container>, OpenModelError> {
    if container.kind() != blend::KIND {
        return Ok(Vec::new());
    }
    let entries: Vec<Entry> = container.parameter(MEMBERS)?;
    let open = |number| open_inside(container, &member_folder(number), OpenMode::Map);
    (0..entries.len().min(MAX_MEMBERS)).map(open).collect()
}

/// Memory of one thread's queries.
#[derive(Default)]
pub(crate) struct Scratch {
    members: Vec<(crate::Scratch, Answer)>,
    rule: RuleScratch,
    rest: Rest,
}

/// Buffers of the labels that follow the candidates.
#[derive(Default)]
struct Rest {
    sums: Vec<Scored>,
    known: Vec<u32>,
}

/// The options for queries of members: enough labels for every candidate, and for an answer of the
/// requested length.
fn options<'a>(ask: &Ask<'a>) -> QueryOptions<'a> {
    QueryOptions { candidates: ask.candidates, ..QueryOptions::top(ask.top_k.max(DEPTH)) }
}

/// Cuts an answer to `k` labels, or adds those that follow the candidates.
fn finish(answer: &mut Vec<Scored>, lists: &[&[Scored]], k: usize, rest: &mut Rest) {
    let ranked = answer.len();
    if ranked >= k {
        return answer.truncate(k);
    }
    let Rest { sums, known } = rest;
    candidates(lists, usize::MAX, sums);
    sums.sort_unstable_by(|&a, &b| rank_order(a, b));
    let least = answer.last().map_or(1.0, |last| last.score);
    known.clear();
    known.extend(answer.iter().map(|s| s.label));
    known.sort_unstable();
    let others = sums.iter().filter(|s| known.binary_search(&s.label).is_err());
    // The scores stay below those of the candidates: the sums are less than 1.
    let mut before = Some((least, f32::INFINITY));
    for s in others.take(k - ranked) {
        let score = below(s.score * least, s.score, before);
        before = Some((score, s.score));
        answer.push(Scored { label: s.label, score });
    }
}

impl Answering for Blend {
    // It grows to the number of members when it is used.
    type Scratch = Scratch;

    fn shape(&self) -> ModelShape {
        let about = self.members[0].describe();
        ModelShape {
            batch_size: 4096,
            shares_queries: true,
            ..ModelShape::new(about.takes, about.n_features, about.n_labels)
        }
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        write_blend(writer, &self.rule, &self.features, &self.members, None)
    }

    fn scores_at_most_one(&self) -> bool {
        true
    }

    fn one(
        &self,
        row: Row<'_>,
        ask: &Ask<'_>,
        scratch: &mut Scratch,
        out: &mut Vec<Scored>,
    ) -> Result<Told, QueryError> {
        let Scratch { members, rule, rest } = scratch;
        members.resize_with(self.members.len(), Default::default);
        let options = options(ask);
        for (member, (scratch, answer)) in self.members.iter().zip(&mut *members) {
            member.predict(&row, &options, scratch, answer)?;
        }
        let mut lists: [&[Scored]; MAX_MEMBERS] = [&[]; MAX_MEMBERS];
        lists.iter_mut().zip(&*members).for_each(|(list, (_, answer))| *list = &answer.labels);
        let lists = &lists[..members.len()];
        out.clear();
        self.rule.rank(&self.features, std::iter::once(lists), rule, |ranked| out.extend_from_slice(ranked));
        finish(out, lists, ask.top_k, rest);
        // A term is known where any member knows it; members have vocabularies of their own.
        let known_terms = members.iter().filter_map(|(_, answer)| answer.known_terms).max();
        Ok(Told { certificate: None, known_terms })
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, _: &mut Scratch) -> Result<Answers, BatchError> {
        let options = options(ask);
        let n = rows.len();
        let (mut answers, mut known_terms) = (Vec::with_capacity(self.members.len()), Vec::new());
        for member in &self.members {
            let of = member.predict_batch(rows, &options)?;
            known_terms.resize(if of.known_terms.is_empty() { known_terms.len() } else { n }, 0);
            known_terms.iter_mut().zip(of.known_terms).for_each(|(most, of)| *most = of.max(*most));
            answers.push(of.ranked);
        }
        let ranked = self.rank(&answers, n, |ranked, lists, rest| finish(ranked, lists, ask.top_k, rest));
        Ok(Answers { known_terms, ..Answers::of(ranked) })
    }
}

/// Number of queries whose candidates one task ranks.
const TOGETHER: usize = 64;
