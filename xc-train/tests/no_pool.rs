//! Opening a model and answering one query makes no pool of threads of the whole process; a batch takes all cores.

#[expect(dead_code, reason = "not every model is asked here")]
#[path = "model/folders.rs"]
mod folders;

use folders::{Front, N_LABELS};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_model::{Answer, Model, QueryOptions, Row, Rows, Scratch};
use xc_nn::Loss;

#[test]
fn models_of_every_kind_open_and_answer_a_query_without_a_global_pool_and_a_batch_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["tree", "mach", "dense", "uniform"];
    let at = |name: &str| folder.path().join(name);
    // Training needs threads; here they are those of a pool that ends.
    ThreadPoolBuilder::new().num_threads(2).build().unwrap().install(|| {
        folders::tree(&at("tree"), Front::Text, 1);
        folders::mach(&at("mach"), Front::Text);
        folders::dense(&at("dense"), Front::Text, Loss::Bce);
        folders::uniform(&at("uniform"), xc_model::classifier::InputKind::Sparse, Loss::SquaredHinge);
    });
    let (mut models, mut first) = (Vec::new(), Vec::new());
    for name in names {
        let model = Model::open(at(name)).unwrap();
        let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
        let rows = folders::rows(5);
        let queries = if name == "uniform" { Rows::Sparse(rows.view()) } else { Rows::texts(&["alpha3", "beta1"]) };
        let query: Row<'_> = queries.row(0);
        let options = QueryOptions::top(N_LABELS);
        model.predict(&query, &options, &mut scratch, &mut answer).unwrap();
        let one = match queries {
            Rows::Texts(_) => model.predict_batch(Rows::texts(&["alpha3"]), &options),
            _ => model.predict_batch(Rows::Sparse(rows.slice(0..1)), &options),
        };
        assert_eq!(one.unwrap().ranked.row(0), answer.labels, "{name}");
        {
            use xc_model::requests::{RequestOptions, Responder};
            let responder = Responder::new(&model, RequestOptions::of(&model)).unwrap();
            let row = rows.row(0);
            let row = row
                .indices()
                .iter()
                .zip(row.values())
                .map(|(feature, value)| format!("{feature}:{value} "))
                .collect::<String>();
            let line = if name == "uniform" { row } else { "alpha3".to_owned() };
            for response in responder.answer(&[line.as_bytes(); 20], &options).unwrap() {
                assert_eq!(response.outcome.unwrap().labels, answer.labels, "{name}");
            }
        }
        models.push(model);
        first.push(answer.labels);
    }
    // It can be made as long as nobody has made it.
    let threads = Arc::new(AtomicUsize::new(0));
    let started = Arc::clone(&threads);
    let count = move |_| _ = started.fetch_add(1, Ordering::Relaxed);
    let global = ThreadPoolBuilder::new().num_threads(3).start_handler(count).build_global();
    global.expect("one query made a global pool");
    for ((name, model), first) in names.iter().zip(&models).zip(&first) {
        let rows = folders::rows(5);
        let queries = if *name == "uniform" { Rows::Sparse(rows.view()) } else { Rows::texts(&["alpha3", "beta1"]) };
        let batch = model.predict_batch(queries, &QueryOptions::top(N_LABELS)).unwrap();
        assert_eq!(batch.ranked.row(0), first, "{name}");
        assert_eq!(model.features(queries).unwrap().len(), queries.len(), "{name}");
    }
    assert_eq!(threads.load(Ordering::Relaxed), 3);
}

/// The test above once more, as a program whose stderr is looked at.
#[test]
fn nothing_is_written_to_stderr() {
    let test = "models_of_every_kind_open_and_answer_a_query_without_a_global_pool_and_a_batch_in_it";
    let program = std::env::current_exe().unwrap();
    let outcome = std::process::Command::new(program).args(["--exact", "--nocapture", test]).output().unwrap();
    assert!(outcome.status.success() && String::from_utf8_lossy(&outcome.stdout).contains("1 passed"));
    assert_eq!(String::from_utf8_lossy(&outcome.stderr), "");
}
