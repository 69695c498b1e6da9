//! Labels and instances of a trained network as vectors, for a library of nearest neighbours: the logit of
//! a label is their inner product.
//!
//! `cargo run --release -p xc-model --example label_vectors -- MODEL INSTANCES FOLDER` writes
//! `base.npy` (a row a label, its bias behind the weights) and `query.npy` (the units of an instance, and 1).

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use xc_data::{DataRows, read_data, write_npy};
use xc_dense::DenseMatrix;
use xc_model::classifier::Classifier;
use xc_model::{Model, OwnedRows};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, instances, folder] = &arguments[..] else {
        return Err("usage: label_vectors MODEL INSTANCES FOLDER".into());
    };
    let model = Model::open(model)?;
    let classifier = model.as_kind::<Classifier>().ok_or("expected a network")?;
    let rows = match read_data(Path::new(instances), &Default::default())?.rows {
        DataRows::Owned(rows @ OwnedRows::Sparse(_)) if model.pipeline().is_none() => rows,
        rows => model.features(rows.view())?,
    };
    let queries = classifier.query_vectors(rows.view(), 1.0);
    for (name, vectors) in [("base.npy", classifier.label_vectors(1.0)?), ("query.npy", queries)] {
        let DenseMatrix { rows, columns, values } = vectors;
        write_npy(&mut BufWriter::new(File::create(Path::new(folder).join(name))?), rows, columns, &values)?;
    }
    Ok(())
}
