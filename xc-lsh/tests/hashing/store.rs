//! Tables on disk: they come back bit for bit, and folders that hold something else are errors.

use crate::draws::{normals, params};
use proptest::prelude::*;
use std::path::Path;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::tables::{By, KIND, OpenTablesError, Query, QueryLimits, QueryScratch, Tables, TablesStateError};
use xc_lsh::{FamilyKind, FamilyParams, KeyScratch, Keys, Projection};
use xc_store::{ArrayRef, ContainerWriter, OpenMode};

/// Four items in two tables of keys of one bit, of which item 3 has changed in table 1.
fn small() -> (Tables, FamilyParams) {
    let params = params(FamilyKind::SimHash { projection: Projection::Gaussian }, 4, 1, 2, 1);
    let mut tables = Tables::of_keys(1, Keys::from_rows(2, vec![0, 0, 1, 0, 0, 1, 1, 0]));
    tables.update(&[3], &Keys::from_rows(2, vec![1, 1]));
    (tables, params)
}

#[test]
fn tables_come_back_and_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables");
    let params = params(FamilyKind::Wta { bin: 4 }, 8, 3, 7, 1);
    let family = params.build().unwrap();
    let vectors = normals(&mut Stream::new(1), 200 * 8);
    let mut tables = Tables::of_dense(&*family, DenseRows::new(&vectors, 8), &mut KeyScratch::default()).unwrap();
    let mut keys = Keys::new(7);
    family.keys_dense(DenseRows::new(&vectors[..40 * 8], 8), &mut keys, &mut KeyScratch::default()).unwrap();
    tables.update(&(100..140).collect::<Vec<_>>(), &keys);
    tables.save(&path, &params).unwrap();
    for mode in [OpenMode::Map, OpenMode::Read] {
        let (mut opened, functions) = Tables::open(&path, mode).unwrap();
        assert_eq!((functions, opened.state(), opened.stats()), (params, tables.state(), tables.stats()));
        let mut own = tables.clone();
        for _ in 0..2 {
            for item in 0..200 {
                let answer = |tables: &Tables| {
                    let query = Query { by: By::Items(&[item]), turn: item.into(), excluded: &[] };
                    let (limits, mut found) = (QueryLimits { candidates: 30, per_bucket: 9 }, Vec::new());
                    let counts = tables.query(query, limits, &mut QueryScratch::default(), &mut found);
                    (counts, found)
                };
                assert_eq!(answer(&opened), answer(&own));
            }
            // Writing copies what lies in the file.
            opened.sort(2..5);
            own.sort(2..5);
        }
    }
}

/// Writes the arrays of the small tables, one of them changed.
fn write(path: &Path, name: &str, change: impl Fn(&mut Vec<u32>), functions: &FamilyParams, n_items: usize) {
    let (tables, _) = small();
    let state = tables.state();
    let mut writer = ContainerWriter::create(path, KIND).unwrap();
    writer.set_parameter("functions", serde_json::to_value(functions).unwrap());
    writer.set_parameter("n_items", n_items);
    writer.set_parameter("key_bits", 1);
    writer.set_parameter("n_zero", 0);
    let arrays: [(&str, Vec<u32>, [usize; 2]); 4] = [
        ("starts", vec![0, 2, 4, 0, 3, 4], [2, 3]),
        ("ids", vec![0, 2, 1, 3, 0, 1, 3, 2], [2, 4]),
        ("keys", state.keys.to_vec(), [4, 2]),
        ("changes", state.changes, [1, 3]),
    ];
    for (of, mut values, shape) in arrays {
        if of == name {
            change(&mut values);
        }
        writer.add(of, ArrayRef::new(&values, &shape)).unwrap();
    }
    writer.add("ends", ArrayRef::new(&state.ends, &[2])).unwrap();
    writer.finish().unwrap();
}

#[test]
fn arrays_that_are_no_tables_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (_, params) = small();
    let open = |name: &str, change: &dyn Fn(&mut Vec<u32>)| {
        let path = folder.path().join(name);
        write(&path, name, change, &params, 4);
        Tables::open(&path, OpenMode::Map).map(|_| ())
    };
    assert!(open("nothing", &|_| ()).is_ok());
    let bucket = |result: Result<(), OpenTablesError>| match result {
        Err(OpenTablesError::Bucket { table, key, .. }) => (table, key),
        other => panic!("{other:?}"),
    };
    // A start that is not 0, falls, goes beyond the items, or does not end with them.
    assert_eq!(bucket(open("starts", &|s| s[0] = 1)), (0, 0));
    assert_eq!(bucket(open("starts", &|s| s[1] = 5)), (0, 0));
    assert_eq!(bucket(open("starts", &|s| s[4] = 9)), (1, 0));
    assert_eq!(bucket(open("starts", &|s| s[5] = 3)), (1, 1));
    // Items that are not there, twice, in the bucket of another key, or do not ascend.
    assert_eq!(bucket(open("ids", &|s| s[1] = 4)), (0, 0));
    assert_eq!(bucket(open("ids", &|s| s[1] = 0)), (0, 0));
    assert_eq!(bucket(open("ids", &|s| s.swap(1, 2))), (0, 0));
    assert_eq!(bucket(open("ids", &|s| s.swap(2, 3))), (0, 1));
    assert_eq!(bucket(open("keys", &|s| s[0] = 1)), (0, 0));
    let keys = |result: Result<(), OpenTablesError>| match result {
        Err(OpenTablesError::Keys { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert_eq!(keys(open("keys", &|s| s[2] = 2)), TablesStateError::Key { item: 1, key: 2, key_bits: 1 });
    assert!(matches!(keys(open("changes", &|s| s[2] = 4)), TablesStateError::Change { table: 1, at: 0, .. }));
    assert!(matches!(keys(open("changes", &|s| s[1] = 0)), TablesStateError::Change { .. }));
}

#[test]
fn parameters_of_other_tables_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (_, params) = small();
    let path = folder.path().join("t");
    write(&path, "", |_| (), &FamilyParams { n_codes: 0, ..params }, 4);
    assert!(matches!(Tables::open(&path, OpenMode::Map), Err(OpenTablesError::Functions { .. })));
    write(&path, "", |_| (), &FamilyParams { n_tables: 3, ..params }, 4);
    assert!(matches!(Tables::open(&path, OpenMode::Map), Err(OpenTablesError::Open(_))));
    for n_items in [3, u32::MAX as usize, usize::MAX] {
        write(&path, "", |_| (), &params, n_items);
        let error = Tables::open(&path, OpenMode::Map).unwrap_err().to_string();
        assert!(error.contains("t"), "{error}");
    }
}

proptest! {
    #[test]
    fn whatever_the_arrays_hold_opens_as_tables_or_is_an_error(
        at in 0usize..4, place in 0usize..8, value in prop_oneof![0u32..6, any::<u32>()]
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (_, params) = small();
        let name = ["starts", "ids", "keys", "changes"][at];
        write(folder.path().join("t").as_path(), name, |values| {
            let n = values.len();
            values[place % n] = value;
        }, &params, 4);
        if let Ok((tables, _)) = Tables::open(&folder.path().join("t"), OpenMode::Map) {
            let again = Tables::restore(2, 1, tables.state()).unwrap();
            prop_assert_eq!(again.stats(), tables.stats());
        }
    }
}
