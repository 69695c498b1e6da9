//! Saving, opening, replacing, and what damaged folders give.

use super::*;
use half::{bf16, f16};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use xc_buffer::dtype::DType;

/// An error and what caused it, joined as a program prints them.
trait Said {
    fn said(&self) -> String;
}

impl<E: std::error::Error> Said for E {
    fn said(&self) -> String {
        let links = std::iter::successors(self.source(), |link| link.source());
        links.fold(self.to_string(), |text, link| format!("{text}: {link}"))
    }
}

fn names() -> Vec<String> {
    ["amber", "", "two words", "übung"].map(str::to_owned).to_vec()
}

/// A small model with every kind of content; `seed` changes some of it.
fn save(model: &Path, seed: u32) {
    let mut writer = ContainerWriter::create(model, "tree").unwrap();
    writer.set_parameter("beam", 10);
    writer.set_parameter("bias", 1.5);
    writer.set_pipeline(serde_json::json!({"tokens": ["word", 2]}));
    writer.labels(&names()).unwrap();
    writer.add_slice("a.u8", &[1u8, 2, 3]).unwrap();
    writer.add_slice("b.u64", &[u64::MAX, u64::from(seed)]).unwrap();
    writer.add("c.f32", ArrayRef::new(&[0.5f32, -1.0, f32::MIN_POSITIVE, 4.0, 5.0, 6.0], &[2, 3])).unwrap();
    writer.add_slice::<u32>("d.empty", &[]).unwrap();
    writer.add_slice("e.f16", &[f16::from_f32(0.5)]).unwrap();
    writer.add_slice("f.bf16", &[bf16::from_f32(-2.0), bf16::ONE]).unwrap();
    let mut first = writer.stream("s.u16", DType::U16).unwrap();
    let mut second = writer.stream("t.f64", DType::F64).unwrap();
    for i in 0..100u16 {
        first.extend(&[i, i + 1]).unwrap();
        second.write_all(&f64::from(i).to_le_bytes()).unwrap();
    }
    second.finish_shaped(&[50, 2]).unwrap();
    first.finish().unwrap();
    writer.finish().unwrap();
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

#[test]
fn what_is_saved_comes_back_in_every_mode_and_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    save(&model, 7);
    for mode in [OpenMode::Map, OpenMode::MapPopulate, OpenMode::Read] {
        let container = Container::open(&model, mode).unwrap();
        assert_eq!((container.kind(), container.format_version()), ("tree", FORMAT_VERSION));
        container.expect_kind("tree").unwrap();
        assert!(matches!(container.expect_kind("mach"), Err(OpenError::Kind { .. })));
        assert_eq!(container.parameter::<usize>("beam").unwrap(), 10);
        assert_eq!(container.parameter::<f32>("bias").unwrap(), 1.5);
        assert_eq!(container.parameter::<Option<u8>>("absent").unwrap(), None);
        assert!(matches!(container.parameter::<u8>("bias"), Err(OpenError::Parameter { .. })));
        assert_eq!(container.pipeline().unwrap()["tokens"][1], 2);
        assert_eq!(container.labels().unwrap().unwrap(), names());
        assert_eq!(&container.array::<u8>("a.u8").unwrap()[..], &[1, 2, 3]);
        assert_eq!(&container.array::<u64>("b.u64").unwrap()[..], &[u64::MAX, 7]);
        assert_eq!(container.array_shaped::<f32>("c.f32", &[2, 3]).unwrap()[5], 6.0);
        assert!(matches!(container.array_shaped::<f32>("c.f32", &[6]), Err(OpenError::Shape { .. })));
        let bytes = container.bytes("c.f32", DType::F32, &[2, 3]).unwrap();
        assert_eq!(bytes[4..8], (-1.0f32).to_le_bytes());
        assert!(container.array::<u32>("d.empty").unwrap().is_empty());
        assert_eq!(container.array::<f16>("e.f16").unwrap()[0].to_f32(), 0.5);
        assert_eq!(container.array::<bf16>("f.bf16").unwrap()[0].to_f32(), -2.0);
        assert_eq!(container.array::<u16>("s.u16").unwrap()[199], 100);
        assert_eq!(container.array_shaped::<f64>("t.f64", &[50, 2]).unwrap()[99], 99.0);
        for (name, entry) in container.arrays() {
            let place = &container.places[name];
            assert_eq!(place.range.start % ALIGNMENT, 0, "{name}");
            assert_eq!(place.range.len(), entry.n_bytes().unwrap());
        }
        assert_eq!(container.array::<u64>("b.u64").unwrap().as_ptr() as usize % ALIGNMENT, 0);
        assert_eq!(container.verify().unwrap(), []);
        container.advise(xc_buffer::Advice::Random).unwrap();
        // An array outlives the container.
        let array = container.array::<u16>("s.u16").unwrap();
        drop(container);
        assert_eq!(array.clone()[1], 1);
    }
    let only = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(only, 1, "nothing is left beside the model");
}

#[test]
fn wrong_questions_name_the_array() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    save(&model, 7);
    let container = Container::open(&model, OpenMode::Map).unwrap();
    let error = container.array::<f32>("a.u8").unwrap_err().said();
    assert!(error.contains("model.safetensors") && error.contains("a.u8") && error.contains("F32"), "{error}");
    let error = container.array::<f32>("nothing").unwrap_err().said();
    assert!(error.contains("\"nothing\""), "{error}");
    let error = container.bytes("nothing", DType::U8, &[3]).unwrap_err().said();
    assert!(error.contains("no array \"nothing\""), "{error}");
    let error = container.bytes("a.u8", DType::I8, &[3]).unwrap_err().said();
    assert!(error.contains("array \"a.u8\" is of type U8, expected I8"), "{error}");
    let error = container.bytes("c.f32", DType::F32, &[3, 2]).unwrap_err().said();
    assert!(error.contains("array \"c.f32\" has shape [2, 3], expected [3, 2]"), "{error}");
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("other-name"));
    save(&a, 7);
    save(&b, 7);
    assert_eq!(contents(&a), contents(&b));
}

#[test]
fn many_arrays_overflow_into_further_files() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let mut writer = ContainerWriter::create(&model, "tree").unwrap();
    let long = "x".repeat(header::MAX_NAME_BYTES - 4);
    for i in 0..300u32 {
        writer.add(&format!("{long}{i}"), ArrayRef::new(&[i], &[1; header::MAX_RANK])).unwrap();
    }
    writer.finish().unwrap();
    assert!(model.join("model.2.safetensors").exists());
    let container = Container::open(&model, OpenMode::Map).unwrap();
    for i in 0..300u32 {
        assert_eq!(container.array::<u32>(&format!("{long}{i}")).unwrap()[0], i);
    }
}

#[test]
fn a_streamed_array_of_the_longest_name_and_rank_has_room_for_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let mut writer = ContainerWriter::create(&model, "tree").unwrap();
    let name = "n".repeat(header::MAX_NAME_BYTES);
    let mut text = header::HeaderText::default();
    text.push(&name, DType::Bf16, &[usize::MAX; header::MAX_RANK], u64::MAX / 2, u64::MAX / 2);
    assert_eq!(text.to_bytes(header::STREAM_RESERVE).len(), header::STREAM_RESERVE);
    let mut stream = writer.stream(&name, DType::U8).unwrap();
    stream.extend(&[1u8; 12]).unwrap();
    stream.finish_shaped(&[1, 2, 1, 3, 1, 2, 1, 1]).unwrap();
    writer.finish().unwrap();
    assert_eq!(Container::open(&model, OpenMode::Read).unwrap().array::<u8>(&name).unwrap().len(), 12);
}

#[test]
fn an_existing_model_is_replaced_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    save(&model, 1);
    let before = contents(&model);
    // A save that stops half-way leaves the old model and no folder behind.
    let mut writer = ContainerWriter::create(&model, "tree").unwrap();
    writer.add_slice("x", &[1u8]).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    drop(writer);
    assert_eq!(contents(&model), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // A mapping of the old model stays valid over the replacement.
    let old = Container::open(&model, OpenMode::Map).unwrap().array::<u64>("b.u64").unwrap();
    save(&model, 2);
    assert_eq!(Container::open(&model, OpenMode::Map).unwrap().array::<u64>("b.u64").unwrap()[1], 2);
    assert_eq!(old[1], 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // A model folder with something of the user's in it.
    fs::write(model.join("notes.md"), "mine").unwrap();
    let error = ContainerWriter::create(&model, "tree").unwrap_err();
    assert!(matches!(&error, WriteError::Occupied { why, .. } if why.contains("notes.md")), "{error}");
    // Other folders, files, and a parent that is not there.
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("config.json"), "{\"model_type\": \"bert\"}").unwrap();
    assert!(matches!(ContainerWriter::check(&other), Err(WriteError::Occupied { .. })));
    let file = folder.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(matches!(ContainerWriter::check(&file), Err(WriteError::Occupied { .. })));
    let absent = folder.path().join("no/such/place");
    assert!(matches!(ContainerWriter::create(&absent, "tree"), Err(WriteError::Io(_))));
    assert!(matches!(ContainerWriter::check(&absent), Err(WriteError::Io(_))));
    assert!(matches!(
        ContainerWriter::check(&file.join("below")),
        Err(WriteError::Occupied { .. } | WriteError::Io(_))
    ));
}

#[test]
fn the_index_of_a_model_outlives_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    save(&model, 1);
    save(&model.join(PART_FOLDER), 7);
    let index = contents(&model.join(PART_FOLDER));
    save(&model, 2);
    assert_eq!(contents(&model.join(PART_FOLDER)), index);
    assert_eq!(Container::open(&model, OpenMode::Map).unwrap().array::<u64>("b.u64").unwrap()[1], 2);
    // A model of another kind has no use for it.
    ContainerWriter::create(&model, "other").unwrap().finish().unwrap();
    assert!(!model.join(PART_FOLDER).exists());
    // What is not ours is not touched, nor what stands in it.
    for inner in ["notes.md", "index/config.json"] {
        let part = model.join(PART_FOLDER);
        save(&part, 7);
        fs::create_dir_all(part.join(inner).parent().unwrap()).unwrap();
        fs::write(part.join(inner), "{}").unwrap();
        let error = ContainerWriter::create(&model, "tree").unwrap_err();
        assert!(matches!(&error, WriteError::Occupied { why, .. } if why.contains("index")), "{error}");
        fs::remove_dir_all(&part).unwrap();
    }
}

#[test]
fn a_destination_filled_while_the_model_was_built_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let writer = ContainerWriter::create(&model, "tree").unwrap();
    fs::create_dir(&model).unwrap();
    fs::write(model.join("thesis.tex"), "text").unwrap();
    assert!(matches!(writer.finish(), Err(WriteError::Occupied { .. })));
    assert_eq!(contents(&model).len(), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_model_is_followed_and_the_folder_is_readable_as_the_umask_says() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (model, link) = (folder.path().join("model"), folder.path().join("link"));
    save(&model, 1);
    std::os::unix::fs::symlink(&model, &link).unwrap();
    save(&link, 2);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(Container::open(&model, OpenMode::Map).unwrap().array::<u64>("b.u64").unwrap()[1], 2);
    let plain = folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    assert_eq!(mode(&model), mode(&plain));
}

#[test]
fn bad_calls_of_the_writer_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let mut writer = ContainerWriter::create(&model, "tree").unwrap();
    writer.add_slice("a", &[1u8]).unwrap();
    for name in ["", "a", "_pad.0", "__metadata__", "a/b", "..\\x", "é", "a\"b", &"n".repeat(129)] {
        assert!(matches!(writer.add_slice(name, &[1u8]), Err(WriteError::Name { .. })), "{name:?}");
    }
    let short = ArrayRef { dtype: DType::U32, shape: &[2], bytes: &[0; 7] };
    assert!(matches!(writer.add("b", short), Err(WriteError::Shape { .. })));
    let huge = ArrayRef { dtype: DType::U32, shape: &[usize::MAX, 8], bytes: &[] };
    assert!(matches!(writer.add("b", huge), Err(WriteError::Shape { .. })));
    assert!(matches!(writer.labels(&["a\nb".to_owned()]), Err(WriteError::LabelName { label: 0, .. })));
    let mut torn = writer.stream("c", DType::U32).unwrap();
    torn.write_all(&[0; 6]).unwrap();
    assert!(matches!(torn.finish(), Err(WriteError::Shape { .. })));
    assert!(matches!(writer.finish(), Err(WriteError::UnfinishedStream { .. })));
    assert!(!model.exists());
}

/// Saves a model, lets `change` spoil its `config.json`, opens it.
fn open_with_config(change: impl FnOnce(&mut serde_json::Value)) -> OpenError {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    save(&model, 7);
    let path = model.join("config.json");
    let mut config = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    fs::write(&path, serde_json::to_vec(&config).unwrap()).unwrap();
    Container::open(&model, OpenMode::Map).unwrap_err()
}

#[test]
fn a_configuration_that_does_not_match_the_files_is_told_apart() {
    let newer = open_with_config(|c| c["format_version"] = 2.into());
    assert!(matches!(newer, OpenError::NewerVersion { got: 2, supported: 1, .. }));
    assert!(matches!(open_with_config(|c| c["format_version"] = "1".into()), OpenError::Config { .. }));
    assert!(matches!(open_with_config(|c| c["format"] = "bert".into()), OpenError::NotAModel { .. }));
    let outside =
        ["../model.safetensors", "model-/../x.safetensors", "/etc/passwd", "", "config.json", "model\n.safetensors"];
    for file in outside {
        let error = open_with_config(|c| c["arrays"]["a.u8"]["file"] = file.into());
        assert!(matches!(error, OpenError::FileName { .. }), "{error}");
    }
    let error = open_with_config(|c| c["arrays"]["a.u8"]["file"] = "model-none.safetensors".into());
    assert!(matches!(error, OpenError::Io { .. }) && error.to_string().contains("model-none.safetensors"), "{error}");
    let error = open_with_config(|c| c["arrays"]["a.u8"]["dtype"] = "U16".into());
    assert!(matches!(error, OpenError::Dtype { .. }), "{error}");
    assert!(matches!(open_with_config(|c| c["arrays"]["a.u8"]["dtype"] = "F8".into()), OpenError::Config { .. }));
    let error = open_with_config(|c| c["arrays"]["a.u8"]["shape"] = serde_json::json!([4]));
    assert!(matches!(error, OpenError::Shape { .. }), "{error}");
    let error = open_with_config(|c| {
        let entry = c["arrays"]["a.u8"].clone();
        c["arrays"]["z"] = entry;
    });
    assert!(matches!(&error, OpenError::MissingArray { name, .. } if name == "z"), "{error}");
    let error = open_with_config(|c| drop(c["arrays"].as_object_mut().unwrap().remove("a.u8")));
    assert!(matches!(&error, OpenError::UnknownArray { name, .. } if name == "a.u8"), "{error}");
}

#[test]
fn words_of_a_damaged_file_stand_in_the_cause_alone() {
    let error = open_with_config(|c| c["arrays"]["a.u8"]["dtype"] = "F\n8\u{1b}".into());
    assert!(error.to_string().ends_with("config.json: malformed") && error.said().contains("F\n8\u{1b}"), "{error:?}");
}

/// Folders that earlier versions wrote, kept for ever. Today's writer must still write the newest
/// of them, byte for byte.
#[test]
fn models_of_every_format_version_open() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/model-v1");
    let container = Container::open(&stored, OpenMode::Map).unwrap();
    assert!(container.verify().unwrap().is_empty());
    assert_eq!(container.format_version(), 1);
    assert_eq!(container.array_shaped::<f32>("c.f32", &[2, 3]).unwrap()[2], f32::MIN_POSITIVE);
    assert_eq!(container.array::<u16>("s.u16").unwrap()[199], 100);
    assert_eq!(container.labels().unwrap().unwrap(), names());
    let folder = tempfile::tempdir().unwrap();
    save(&folder.path().join("model"), 7);
    assert_eq!(contents(&folder.path().join("model")), contents(&stored));
}

#[test]
fn what_is_no_model_says_so() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Container::open(folder.path(), OpenMode::Map), Err(OpenError::NotAModel { .. })));
    assert!(matches!(Container::open(&folder.path().join("no"), OpenMode::Map), Err(OpenError::Io { .. })));
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(Container::open(&file, OpenMode::Map), Err(OpenError::NotAModel { .. })));
    fs::write(folder.path().join("config.json"), "{torn").unwrap();
    let error = Container::open(folder.path(), OpenMode::Map).unwrap_err();
    assert!(matches!(error, OpenError::Config { .. }) && error.said().contains("line 1"), "{error}");
}

#[test]
fn hostile_headers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let path = model.join("model.safetensors");
    let entry = |shape: &str, offsets: &str| {
        let text = format!("{{\"a\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":{offsets}}}}}");
        [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &[0; 8]].concat()
    };
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "bytes, expected 8"),
        (vec![1, 2, 3], "3 bytes, expected 8"),
        (u64::MAX.to_le_bytes().to_vec(), "the limit is"),
        (100u64.to_le_bytes().to_vec(), "8 bytes, expected 108"),
        (entry("[2]", "[0,16]"), "header"),
        (entry("[2]", "[8,0]"), "header"),
        (entry("[1]", "[4,8]"), "header"),
        (entry("[4294967296,4294967296]", "[0,0]"), "header"),
        (entry("[-1]", "[0,4]"), "header"),
        (entry("[1]", "[0,4]"), "bytes, expected"),
        (entry("[3]", "[0,12]"), "bytes, expected"),
    ];
    for (bytes, words) in cases {
        let mut writer = ContainerWriter::create(&model, "tree").unwrap();
        writer.add_slice("a", &[1.0f32, 2.0]).unwrap();
        writer.finish().unwrap();
        fs::write(&path, &bytes).unwrap();
        let error = Container::open(&model, OpenMode::Map).unwrap_err().said();
        assert!(error.contains("model.safetensors") && error.contains(words), "{error}: expected {words}");
    }
    // The sound form of the same text opens: the cases above fail for the reason they name. Its
    // data is misaligned.
    fs::write(&path, entry("[2]", "[0,8]")).unwrap();
    let container = Container::open(&model, OpenMode::Read).unwrap();
    let length = fs::metadata(&path).unwrap().len();
    assert_eq!(container.array::<f32>("a").is_ok(), (length - 8).is_multiple_of(4));
}

#[test]
fn label_names_that_do_not_match_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    save(&model, 7);
    fs::write(model.join("labels.txt"), "a\nb\n").unwrap();
    let container = Container::open(&model, OpenMode::Map).unwrap();
    assert!(matches!(container.labels(), Err(OpenError::LabelCount { got: 2, expected: 4, .. })));
    assert_eq!(container.verify().unwrap()[0].damage, Damage::Labels);
    fs::write(model.join("labels.txt"), b"a\nb\nc\xff\n").unwrap();
    assert!(matches!(container.labels(), Err(OpenError::LabelText { line: 3, .. })));
}

/// Opens, views every array and verifies; `None` when opening failed.
fn visit(model: &Path) -> Option<Vec<Mismatch>> {
    let container = Container::open(model, OpenMode::Read).ok()?;
    for (name, _) in container.arrays() {
        let _ = (container.array::<u8>(name), container.array::<f32>(name), container.array::<u64>(name));
    }
    let _ = (container.labels(), container.parameter::<usize>("beam"));
    Some(container.verify().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_flip_or_cut_panics_and_none_in_the_arrays_goes_unseen(
        file in 0usize..5, at in 0.0f64..1.0, bit in 0u8..8, is_cut in any::<bool>(), in_data in any::<bool>()
    ) {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model");
        save(&model, 7);
        let files: Vec<PathBuf> =
            contents(&model).into_keys().map(|name| model.join(name)).collect();
        let path = &files[file % files.len()];
        let mut bytes = fs::read(path).unwrap();
        let is_arrays = path.extension().unwrap() == "safetensors";
        let data = if is_arrays { 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize } else { 0 };
        let from = if in_data { data } else { 0 };
        let at = from + ((bytes.len() - from) as f64 * at) as usize;
        if is_cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        fs::write(path, &bytes).unwrap();
        let found = visit(&model);
        if is_arrays && (is_cut || at >= data) {
            prop_assert!(found.is_none_or(|list| !list.is_empty()), "{} at {at}", path.display());
        }
    }

    #[test]
    fn any_arrays_come_back(lists in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..40), 0..12)) {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model");
        let mut writer = ContainerWriter::create(&model, "k").unwrap();
        for (i, list) in lists.iter().enumerate() {
            if i % 3 == 2 {
                let mut stream = writer.stream(&format!("a{i}"), DType::U32).unwrap();
                stream.extend(list).unwrap();
                stream.finish().unwrap();
            } else {
                writer.add_slice(&format!("a{i}"), list).unwrap();
            }
        }
        writer.finish().unwrap();
        let container = Container::open(&model, OpenMode::Map).unwrap();
        for (i, list) in lists.iter().enumerate() {
            prop_assert_eq!(&container.array::<u32>(&format!("a{i}")).unwrap()[..], &list[..]);
        }
        prop_assert!(container.verify().unwrap().is_empty());
    }
}

#[test]
fn a_part_in_a_file_of_its_own_can_be_lost_alone() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let save = || {
        let mut writer = ContainerWriter::create(&model, "mach").unwrap();
        writer.add_slice("shared", &[1u8]).unwrap();
        for part in ["part-0", "part-1"] {
            writer.begin_file(part).unwrap();
            writer.add_slice(&format!("{part}.a"), &[1.0f32, 2.0]).unwrap();
            writer.add_slice(&format!("{part}.b"), &[3u32]).unwrap();
        }
        writer.finish().unwrap();
    };
    save();
    let container = Container::open_parts(&model, OpenMode::Map).unwrap();
    assert!(container.lost().len() == 0 && container.verify().unwrap().is_empty());
    assert_eq!(container.entry("part-1.b").unwrap().file, "model-part-1.safetensors");
    let file = model.join("model-part-0.safetensors");
    let whole = fs::read(&file).unwrap();
    let damages: [&dyn Fn(); 3] =
        [&|| fs::remove_file(&file).unwrap(), &|| fs::write(&file, &whole[..whole.len() - 1]).unwrap(), &|| {
            fs::write(&file, [0xff; 40]).unwrap()
        }];
    for damage in damages {
        damage();
        assert!(Container::open(&model, OpenMode::Map).is_err());
        let container = Container::open_parts(&model, OpenMode::Map).unwrap();
        let lost: Vec<_> = container.lost().collect();
        assert!(lost.len() == 1 && lost[0].0 == "model-part-0.safetensors", "{lost:?}");
        assert!(lost[0].1.to_string().contains("model-part-0.safetensors"), "{lost:?}");
        assert!(matches!(container.array::<f32>("part-0.a"), Err(OpenError::Lost { .. })));
        assert_eq!(*container.array::<f32>("part-1.a").unwrap(), [1.0, 2.0]);
        assert_eq!(*container.array::<u8>("shared").unwrap(), [1]);
    }
    // It is still a model of ours, which may be replaced.
    save();
    assert!(Container::open(&model, OpenMode::Map).is_ok());
    assert!(matches!(ContainerWriter::create(&model, "mach").unwrap().begin_file("a/b"), Err(WriteError::Name { .. })));
}

#[test]
fn the_stock_reader_opens_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let mut writer = ContainerWriter::create(&path, "test").unwrap();
    writer.add_slice("a", &[1.0f32, 2.0]).unwrap();
    writer.add_slice("b", &[7u8]).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(path.join("model.safetensors")).unwrap();
    let stock = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let a = stock.tensor("a").unwrap();
    assert_eq!(
        (a.dtype(), a.shape(), a.data()),
        (safetensors::Dtype::F32, &[2][..], bytemuck::bytes_of(&[1.0f32, 2.0]))
    );
    assert_eq!(stock.tensor("b").unwrap().data(), [7]);
}

#[test]
fn a_model_that_is_replaced_while_it_is_opened_is_the_old_one_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    // Two models of other shapes, names and numbers of files.
    let save = |number: u64| {
        let mut writer = ContainerWriter::create(&model, "tree").unwrap();
        writer.set_parameter("number", number);
        writer.labels(&vec![format!("label of {number}"); 1 + number as usize % 3]).unwrap();
        for file in ["a", "b", "c"] {
            writer.begin_file(file).unwrap();
            writer.add_slice(file, &vec![number; 1 + number as usize % 4]).unwrap();
        }
        writer.finish().unwrap();
    };
    save(0);
    // The writer goes on until the reader has had its turn.
    let [last, n_seen] = [const { std::sync::atomic::AtomicU64::new(0) }; 2];
    let order = std::sync::atomic::Ordering::SeqCst;
    let open = |mode| {
        let container = Container::open(&model, mode).unwrap();
        let number: u64 = container.parameter("number").unwrap();
        for file in ["a", "b", "c"] {
            assert_eq!(container.array::<u64>(file).unwrap()[..], vec![number; 1 + number as usize % 4]);
        }
        assert_eq!(container.labels().unwrap().unwrap(), vec![format!("label of {number}"); 1 + number as usize % 3]);
        assert_eq!(container.verify().unwrap(), []);
        let (parts, lost) = (Container::open_parts(&model, mode).unwrap(), number);
        assert_eq!(parts.lost().len(), 0, "after {lost}");
        number
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let is_last = |number: u64| number >= 59 && n_seen.load(order) > 2 || number == 20_000;
            let number = (1..).inspect(|&number| save(number)).find(|&number| is_last(number));
            last.store(number.unwrap(), order);
        });
        let mut seen = std::collections::BTreeSet::new();
        while last.load(order) == 0 {
            seen.extend([OpenMode::Map, OpenMode::Read].map(open));
            n_seen.store(seen.len() as u64, order);
        }
        assert!(seen.len() > 2, "it was never opened while others were saved: {seen:?}");
    });
    let last = last.into_inner();
    assert_eq!(open(OpenMode::Map), last);
    // What is open stays what it was.
    let old = Container::open(&model, OpenMode::Map).unwrap();
    save(last + 1);
    save(last + 2);
    assert_eq!(old.labels().unwrap().unwrap()[0], format!("label of {last}"));
    assert_eq!(old.verify().unwrap(), []);
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_refused_and_nothing_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    for file in ["config.json", "labels.txt", "model.safetensors"] {
        save(&model, 1);
        let path = model.join(file);
        for special in ["pipe", "device", "folder"] {
            fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
            match special {
                "pipe" => {
                    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
                    assert!(made.success());
                }
                "device" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
                _ => fs::create_dir(&path).unwrap(),
            }
            let got = Container::open(&model, OpenMode::Map).unwrap_err().said();
            assert!(got.contains(file) && got.contains("not a regular file"), "{special}: {got}");
            let saved = ContainerWriter::check(&model);
            assert!(file != "config.json" || saved.is_err(), "{special}");
        }
        fs::remove_dir(&path).unwrap();
        fs::remove_dir_all(&model).unwrap();
    }
}
