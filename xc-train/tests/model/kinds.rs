//! Custom kinds of models: their answers are checked, and their names are not those of others.

use crate::folders::{self, Front};
use std::error::Error;
use std::path::Path;
use xc_model::classifier::Classifier;
use xc_model::explain::ExplainOptions;
use xc_model::mach::MachModel;
use xc_model::{
    Answer, Answering, Ask, Candidates, InputKind, Kind, Model, ModelShape, OpenModelError, OpenOptions, Opened,
    QueryError, QueryOptions, Row, Rows, Scratch, Told, WrongAnswer,
};
use xc_nn::Loss;
use xc_sparse::rank::Scored;
use xc_sparse::{CsrMatrix, SparseRow};
use xc_store::{Container, ContainerWriter, OpenMode, WriteError};
use xc_tree::TreeModel;

const N_FEATURES: usize = 4;
const N_LABELS: usize = 6;

/// The same labels and scores for every query, whatever is asked.
struct Fixed {
    labels: Vec<u32>,
    scores: Vec<f32>,
}

impl Answering for Fixed {
    type Scratch = ();

    fn shape(&self) -> ModelShape {
        ModelShape::new(InputKind::Sparse, N_FEATURES, N_LABELS)
    }

    fn one(&self, _: Row<'_>, _: &Ask<'_>, _: &mut (), out: &mut Vec<Scored>) -> Result<Told, QueryError> {
        let answer = self.labels.iter().zip(&self.scores).map(|(&label, &score)| Scored { label, score });
        out.splice(.., answer);
        Ok(Told::default())
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.add_slice("labels", &self.labels)?;
        writer.add_slice("scores", &self.scores)
    }
}

fn open(container: &Container) -> Result<Opened, Box<dyn Error + Send + Sync>> {
    let (labels, scores) = (container.array("labels")?.to_vec(), container.array("scores")?.to_vec());
    Ok(Opened::new(Fixed { labels, scores }))
}

const FIXED: Kind = Kind::new("fixed", open);
const TREE: Kind = Kind::new("tree", open);

fn fixed(answer: &[(u32, f32)]) -> Fixed {
    let (labels, scores) = answer.iter().copied().unzip();
    Fixed { labels, scores }
}

/// The answers to one query alone, and to two of them at once.
fn answers(model: &Model, options: &QueryOptions<'_>) -> [Result<Vec<Scored>, QueryError>; 2] {
    let mut answer = Answer::default();
    let row = SparseRow::from_checked(&[1], &[1.0]);
    let one = model.predict(&Row::Sparse(row), options, &mut Scratch::default(), &mut answer).map(|()| answer.labels);
    let rows = CsrMatrix::from_checked((2, N_FEATURES), vec![0, 1, 2], vec![1, 1], vec![1.0; 2]);
    let batch = model.predict_batch(Rows::Sparse(rows.view()), options);
    [one, batch.map(|answers| answers.ranked.row(1).to_vec()).map_err(|e| e.source)]
}

#[test]
fn the_answers_of_a_custom_kind_are_checked() {
    let only = [1, 4];
    let all = QueryOptions::top(3);
    let some = QueryOptions { candidates: Candidates::Labels(&only), ..all };
    type Case<'a> = (&'a [(u32, f32)], &'a QueryOptions<'a>, Option<WrongAnswer>);
    let cases: [Case<'_>; 12] = [
        (&[(2, 0.5), (0, 0.25), (5, 0.25)], &all, None),
        (&[], &all, None),
        (&[(4, 1.0), (1, -3.0)], &some, None),
        (&[(0, 4.0), (1, 3.0), (2, 2.0), (3, 1.0)], &all, Some(WrongAnswer::Length)),
        (&[(6, 0.5)], &all, Some(WrongAnswer::Label)),
        (&[(u32::MAX, 0.5)], &all, Some(WrongAnswer::Label)),
        (&[(1, f32::INFINITY)], &all, Some(WrongAnswer::Score)),
        (&[(1, 0.5), (2, f32::NAN)], &all, Some(WrongAnswer::Score)),
        (&[(1, 0.5), (2, 0.4), (1, 0.3)], &all, Some(WrongAnswer::Twice)),
        (&[(1, 0.5), (2, 0.6)], &all, Some(WrongAnswer::Order)),
        (&[(2, 0.5), (1, 0.5)], &all, Some(WrongAnswer::Order)),
        (&[(4, 0.5), (3, 0.4)], &some, Some(WrongAnswer::Candidate)),
    ];
    for (answer, options, wrong) in cases {
        let model = Model::of(&FIXED, &fixed(answer), &Default::default()).unwrap();
        for got in answers(&model, options) {
            match wrong {
                None => assert!(got.unwrap().iter().map(|s| (s.label, s.score)).eq(answer.iter().copied())),
                Some(wrong) => assert_eq!(got.unwrap_err(), QueryError::Answer { kind: "fixed", wrong }, "{answer:?}"),
            }
        }
    }
}

#[test]
fn a_custom_kind_opens_only_where_it_is_named_and_never_unchecked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    Model::of(&FIXED, &fixed(&[(3, 1.0)]), &Default::default()).unwrap().save(&path).unwrap();
    let with = |kinds: &'static [&'static Kind]| OpenOptions { kinds, ..OpenOptions::default() };

    let own = with(&[&FIXED]);
    let model = Model::open_with(&path, &own).unwrap();
    assert_eq!((model.describe().kind, model.describe().n_labels), ("fixed", N_LABELS));
    assert_eq!(answers(&model, &QueryOptions::top(1)).map(|labels| labels.unwrap()[0].label), [3, 3]);

    let refused = |outcome: Result<Model, OpenModelError>| outcome.unwrap_err().to_string();
    let said = refused(Model::open(&path));
    assert!(said.contains("a model of kind \"fixed\"; expected one of tree, ") && !said.ends_with("fixed"), "{said}");
    assert!(refused(Model::open_with(&path, &with(&[&TREE]))).starts_with("two kinds of models are called \"tree\""));
    let twice = refused(Model::open_with(&path, &with(&[&FIXED, &FIXED])));
    assert!(twice.starts_with("two kinds of models are called \"fixed\""), "{twice}");
    let of_tree = Model::of(&TREE, &fixed(&[(3, 1.0)]), &Default::default());
    assert!(refused(of_tree).starts_with("two kinds of models are called \"tree\""));
    let options = OpenOptions { repetitions: Some(vec![0]), ..own.clone() };
    assert!(refused(Model::open_with(&path, &options)).contains("has no repetitions"));
    let options = OpenOptions { post_processor: Some("sigmoid".into()), ..own.clone() };
    assert!(refused(Model::open_with(&path, &options)).contains("there is no post-processor to choose"));
    // SAFETY: this test wrote the folder.
    let trusted = unsafe { Model::open_trusted(&path, &own) };
    assert!(refused(trusted).contains("are always checked"));
}

/// The label of a text is its length.
struct Lengths;

impl Answering for Lengths {
    type Scratch = ();

    fn shape(&self) -> ModelShape {
        ModelShape::new(InputKind::Text, 0, N_LABELS)
    }

    fn one(&self, row: Row<'_>, ask: &Ask<'_>, _: &mut (), out: &mut Vec<Scored>) -> Result<Told, QueryError> {
        let Row::Text(text) = row else { return Err(QueryError::Own("no text".into())) };
        let best = Scored { label: text.len() as u32, score: 1.0 };
        let is_asked_for = ask.candidates.of(0).is_none_or(|only| only.contains(&best.label));
        out.splice(.., is_asked_for.then_some(best));
        Ok(Told::default())
    }

    fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.add_slice("n", &[N_LABELS as u32])
    }
}

const LENGTHS: Kind = Kind::new("lengths", |_| Ok(Opened::new(Lengths)));

#[test]
fn a_custom_kind_reads_texts_itself_and_is_explained_without_effects() {
    let model = Model::of(&LENGTHS, &Lengths, &Default::default()).unwrap();
    let texts = Rows::texts(&["abc", "a"]);
    let answers = model.predict_batch(texts, &QueryOptions::default()).unwrap();
    assert_eq!(answers.ranked.iter().map(|list| list[0].label).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(model.features(texts).unwrap().len(), 2);
    let explained = |label| model.explain(&Row::Text("abc"), label, &ExplainOptions::default()).unwrap();
    assert_eq!((explained(3).score, explained(3).effects.len(), explained(1).score), (1.0, 0, 0.0));
}

/// The arrays of a model that was opened, as its kind writes them: those of its folder, byte for byte.
fn written_again<A: Answering>(path: &Path) {
    let model = Model::open(path).unwrap();
    let (kind, of) = (model.describe().kind, model.as_kind::<A>().expect("the type of the kind"));
    let again = Container::in_memory(kind, |writer| -> Result<(), WriteError> { of.write(writer) }).unwrap();
    let folder = Container::open(path, OpenMode::Map).unwrap();
    let arrays = |of: &Container| -> Vec<(String, String)> {
        of.arrays().map(|(name, entry)| (name.to_owned(), entry.xxh3.clone())).collect()
    };
    assert!(!arrays(&again).is_empty() && arrays(&again) == arrays(&folder), "{kind}");
    assert_eq!(again.parameter::<usize>("n_labels").unwrap(), model.describe().n_labels);
}

#[test]
fn a_standard_kind_writes_the_arrays_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    folders::tree(&at("tree"), Front::Plain, 2);
    written_again::<TreeModel>(&at("tree"));
    folders::mach(&at("mach"), Front::Plain);
    written_again::<MachModel>(&at("mach"));
    folders::uniform(&at("uniform"), InputKind::Sparse, Loss::SquaredHinge);
    written_again::<Classifier>(&at("uniform"));
}
