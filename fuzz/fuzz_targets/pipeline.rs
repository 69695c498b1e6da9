//! Stored feature pipelines. The first byte says how: parts put together from the input (the JSON, a text, then arrays), or
//! a folder of configuration and array file as `xc` opens it. What opens makes rows, and is stored and opened again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xc_buffer::dtype::DType;
use xc_fuzz::{check_message, folder, pipeline_parts, sections};
use xc_hash::text::{Featurizer, PartArray, PipelineParts};
use xc_store::{Container, OpenMode};

fn from_folder(input: &[u8]) -> Option<(PipelineParts, String)> {
    let [config, arrays, text] = sections(input);
    let path = folder("pipeline", &[("config.json", config), ("model.safetensors", arrays)]);
    let container = match Container::open(&path, OpenMode::Read) {
        Ok(container) => container,
        Err(error) => {
            check_message(&path, &error.to_string());
            return None;
        }
    };
    let mut arrays = Vec::new();
    for (name, entry) in container.arrays() {
        let short = name.strip_prefix("pipeline.").unwrap_or(name).to_owned();
        arrays.push((
            short,
            match entry.dtype {
                DType::F32 => PartArray::F32(container.array::<f32>(name).ok()?.to_vec()),
                DType::U32 => PartArray::U32(container.array::<u32>(name).ok()?.to_vec()),
                DType::U8 => PartArray::U8(container.array::<u8>(name).ok()?.to_vec()),
                _ => return None,
            },
        ));
    }
    Some((PipelineParts { config: container.pipeline()?.clone(), arrays }, String::from_utf8_lossy(text).into_owned()))
}

fuzz_target!(|input: (u8, &[u8])| {
    let read = if input.0 % 2 == 0 { pipeline_parts(input.1) } else { from_folder(input.1) };
    let Some((parts, text)) = read else { return };
    let maker = match Featurizer::from_parts(parts) {
        Ok(maker) => maker,
        Err(error) => return assert!(!error.to_string().contains('\n'), "several lines: {error}"),
    };
    let stored = maker.to_parts();
    let again = Featurizer::from_parts(stored.clone()).expect("what was stored opens");
    assert_eq!(again.to_parts(), stored);
    assert_eq!(again.n_features(), maker.n_features());
    match (maker, again) {
        (Featurizer::Text(maker), Featurizer::Text(again)) => {
            // Long texts times long n-grams are work, not an error.
            let text: String = text.chars().take(300).collect();
            let rows = maker.transform_batch(&[&*text, "The dog, été: a CAT sat!", ""]);
            for (features, values) in rows.iter() {
                assert!(features.windows(2).all(|w| w[0] < w[1]));
                assert!(features.iter().all(|&f| (f as usize) < maker.n_features()));
                assert!(values.iter().all(|v| v.is_finite()));
            }
            let mut scratch = again.scratch();
            assert_eq!(Some(again.transform_one(&text, &mut scratch)), rows.iter().next());
        }
        (Featurizer::Rows(weights), _) => {
            let n = weights.n_features().min(1 << 10);
            let mut values = vec![2.5; n];
            weights
                .apply(n, &[0, n], &(0..n as u32).collect::<Vec<_>>(), &mut values)
                .expect("rows no wider than the weights");
            assert!(values.iter().all(|v| v.is_finite()));
        }
        _ => panic!("another kind"),
    }
});
