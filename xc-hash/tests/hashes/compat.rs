//! Stored pipelines open and make the rows that they made when they were stored.

use serde_json::Value;
use xc_hash::text::*;

fn open(stored: &str) -> (PipelineParts, Value) {
    let mut stored: Value = serde_json::from_str(stored).unwrap();
    let arrays = stored["arrays"].as_array().unwrap().iter().map(|array| {
        let numbers = array["data"].as_array().unwrap();
        let data = match array["type"].as_str().unwrap() {
            "f32" => PartArray::F32(numbers.iter().map(|v| v.as_f64().unwrap() as f32).collect()),
            "u32" => PartArray::U32(numbers.iter().map(|v| v.as_u64().unwrap() as u32).collect()),
            "u8" => PartArray::U8(numbers.iter().map(|v| v.as_u64().unwrap() as u8).collect()),
            other => panic!("type {other}"),
        };
        (array["name"].as_str().unwrap().to_string(), data)
    });
    let arrays = arrays.collect();
    (PipelineParts { config: stored["config"].take(), arrays }, stored["row"].take())
}

#[test]
fn a_stored_pipeline_makes_its_row() {
    opens_and_makes_its_row(include_str!("compat/pipeline.json"));
}

#[test]
fn a_stored_pipeline_with_shared_slots_and_a_fold_makes_its_row() {
    opens_and_makes_its_row(include_str!("compat/pipeline_folded.json"));
}

fn opens_and_makes_its_row(stored: &str) {
    let (parts, row) = open(stored);
    let Featurizer::Text(pipeline) = Featurizer::from_parts(parts.clone()).unwrap() else { panic!("kind") };
    assert_eq!(pipeline.to_parts().config, parts.config);
    let mut scratch = pipeline.scratch();
    let (features, values) = pipeline.transform_one("The CAT and the dogs: été!", &mut scratch);
    let want: Vec<(u32, f32)> = serde_json::from_value(row).unwrap();
    assert_eq!(features, want.iter().map(|x| x.0).collect::<Vec<_>>());
    // The logarithm of another system's library may differ in its last bit.
    assert!(
        values.iter().zip(&want).all(|(got, (_, want))| (got - want).abs() <= 1e-6),
        "{values:?}, expected {want:?}"
    );
}
