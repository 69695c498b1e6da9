//! The transformer below a network as a folder of its own.

use super::tokenizer::{ARRAY, FILE};
use crate::classifier::Classifier;
use crate::{ConvertError, Model};
use serde_json::{Map, Value, json};
use std::path::Path;
use xc_hash::text::{Featurizer, PartArray};
use xc_store::atomic::{OutputFolder, WriteFileError};

/// Writes the transformer that was trained below a network, and its tokenizer.
pub(crate) fn write_transformer(model: &Model, destination: &Path) -> Result<(), ConvertError> {
    let lacking = |what| ConvertError::NoTransformer { path: model.folder().to_owned(), what };
    let transformer = model.as_standard::<Classifier>().and_then(Classifier::transformer);
    let Some((transformer, Featurizer::Tokens(tokens))) = transformer.zip(model.pipeline()) else {
        let is_frozen = matches!(model.pipeline(), Some(Featurizer::Vectors(_)));
        let frozen = "its transformer is as it came, in the folder that it was trained from";
        return Err(lacking(if is_frozen { frozen } else { "it has no transformer" }));
    };
    let parts = tokens.to_parts();
    let file = parts.arrays.into_iter().find_map(|(name, array)| match array {
        PartArray::U8(file) if name == ARRAY => Some(file),
        _ => None,
    });
    let file = file.ok_or_else(|| lacking("it has no tokenizer"))?;
    let write = || -> Result<(), WriteFileError> {
        let folder = OutputFolder::create(destination)?;
        transformer.write_folder(&folder)?;
        folder.file(FILE, |to| std::io::Write::write_all(to, &file))?;
        let of_tokens = parts.config.get("tokens").unwrap_or(&parts.config);
        for (name, config) in configurations(&file, of_tokens) {
            folder.file(name, |to| std::io::Write::write_all(to, format!("{config:#}\n").as_bytes()))?;
        }
        folder.commit()
    };
    write().map_err(|e| ConvertError::Write(Box::new(e)))
}

/// What libraries are told of a tokenizer beside its own file: they would change it to what is usual for its kind. Texts
/// are cut there as they are here.
fn configurations(file: &[u8], tokens: &serde_json::Value) -> [(&'static str, serde_json::Value); 2] {
    let (max_tokens, lower_case) = (&tokens["max_tokens"], tokens["lower_case"] == true);
    let tokenizer: Value = serde_json::from_slice(file).unwrap_or_default();
    let (normalizer, pre_tokenizer) = (&tokenizer["normalizer"], &tokenizer["pre_tokenizer"]);
    // Of the class that reads the file as it is: that of the family builds its usual tokenizer anew.
    let class = json!("PreTrainedTokenizerFast");
    let mut config =
        Map::from_iter([("model_max_length".to_owned(), max_tokens.clone()), ("tokenizer_class".to_owned(), class)]);
    let of_bert = [("do_lower_case", "lowercase"), ("strip_accents", "strip_accents")];
    let of_bert = of_bert.into_iter().chain([("tokenize_chinese_chars", "handle_chinese_chars")]);
    let mut copy = |from: &Value, theirs: &str, ours: &str| config.insert(theirs.to_owned(), from[ours].clone());
    if normalizer["type"] == "BertNormalizer" {
        of_bert.for_each(|(theirs, ours)| drop(copy(normalizer, theirs, ours)));
    }
    if pre_tokenizer["type"] == "ByteLevel" {
        ["add_prefix_space", "trim_offsets"].into_iter().for_each(|name| drop(copy(pre_tokenizer, name, name)));
    }
    let of_sentences = json!({ "max_seq_length": max_tokens, "do_lower_case": lower_case });
    [("tokenizer_config.json", Value::Object(config)), ("sentence_bert_config.json", of_sentences)]
}
