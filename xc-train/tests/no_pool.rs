//! Opening a model and answering makes no pool of threads of the whole process.

#[expect(dead_code, reason = "not every model is asked here")]
#[path = "model/folders.rs"]
mod folders;

use folders::{Front, N_LABELS};
use rayon::ThreadPoolBuilder;
use xc_sparse::rank::Scored;
use xc_train::Loss;
use xc_train::model::{Answer, Model, Queries, Query, QueryOptions, Scratch};

#[test]
fn models_of_every_kind_open_and_answer_without_a_global_pool() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["tree", "mach", "dense", "uniform"];
    let at = |name: &str| folder.path().join(name);
    // Training needs threads; here they are those of a pool that ends.
    ThreadPoolBuilder::new().num_threads(2).build().unwrap().install(|| {
        folders::tree(&at("tree"), Front::Text, 1);
        folders::mach(&at("mach"), Front::Text);
        folders::dense(&at("dense"), Front::Text, Loss::Bce);
        folders::uniform(&at("uniform"), xc_train::classifier::InputKind::Sparse, Loss::SquaredHinge);
    });
    for name in names {
        let model = Model::open(at(name)).unwrap();
        let (mut scratch, mut answer) = (Scratch::default(), Answer::default());
        let rows = folders::rows(5);
        let queries =
            if name == "uniform" { Queries::Sparse(rows.view()) } else { Queries::Text(&["alpha3", "beta1"]) };
        let query: Query<'_> = queries.get(0);
        let options = QueryOptions::top(N_LABELS);
        model.predict(&query, &options, &mut scratch, &mut answer).unwrap();
        let batch = model.predict_batch(queries, &options).unwrap();
        let first: &[Scored] = batch.ranked.row(0);
        assert_eq!(first, answer.labels, "{name}");
        model.features(queries).unwrap();
    }
    // It can be made as long as nobody has made it.
    ThreadPoolBuilder::new().num_threads(1).build_global().expect("answering made a global pool");
}
