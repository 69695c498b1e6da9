//! Folders as HuggingFace's libraries read them, of a transformer in memory: what [`Folder`](super::Folder) reads, written.

use super::super::network::Transformer;
use super::super::params::{Architecture, Pooling, TransformerParams};
use super::super::weights::{Source, sources};
use super::files::WEIGHTS;
use super::opening::CONFIG;
use super::sentence::{DENSE_ARRAYS, MODULE_CONFIG, MODULES, POOLING, class_of};
use crate::state::State as _;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use xc_store::atomic::{OutputFolder, WriteFileError};
use xc_store::{NamedFloats, write_tensors};

impl Transformer {
    /// Writes the configuration, the weights in f32, how states are pooled and the linear layers behind that into a folder;
    /// no tokenizer, which a transformer does not have.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn write_folder(&self, folder: &OutputFolder) -> Result<(), WriteFileError> {
        let parameters = self.parameters();
        let values: BTreeMap<&str, &[f32]> =
            parameters.iter().map(|named| (&*named.name, named.parameter.values())).collect();
        let mut arrays: Vec<NamedFloats<'_>> = Vec::new();
        for Source { parameter, arrays: names, shape } in sources(self.params()) {
            let each = shape.iter().product();
            let parts = values[&*parameter].chunks_exact(each);
            arrays.extend(names.into_iter().zip(parts).map(|(name, part)| (name, shape.clone(), part)));
        }
        write_json(folder, CONFIG, &self.params().config())?;
        folder.file(WEIGHTS, |file| write_tensors(&arrays, file))?;
        let is = |pooling| self.params().pooling == pooling;
        let pooling = json!({
            "word_embedding_dimension": self.params().width,
            "pooling_mode_cls_token": is(Pooling::First),
            "pooling_mode_mean_tokens": is(Pooling::Mean),
        });
        write_json(folder, &format!("{POOLING}/{MODULE_CONFIG}"), &pooling)?;
        // How sentence-transformers puts them together.
        let part = |number: usize, path: &str, class: &str| {
            let class = format!("sentence_transformers.models.{class}");
            json!({ "idx": number, "name": number.to_string(), "path": path, "type": class })
        };
        let mut parts = vec![part(0, "", "Transformer"), part(1, POOLING, "Pooling")];
        for (at, layer) in self.params().dense.iter().enumerate() {
            let path = format!("{}_Dense", parts.len());
            let config = json!({
                "in_features": layer.inputs,
                "out_features": layer.outputs,
                "bias": true,
                "activation_function": class_of(layer.activation),
            });
            write_json(folder, &format!("{path}/{MODULE_CONFIG}"), &config)?;
            let names = layer.arrays(at).map(|(name, _)| name);
            let shapes = [vec![layer.outputs, layer.inputs], vec![layer.outputs]];
            let arrays = DENSE_ARRAYS.iter().zip(shapes).zip(&names);
            let arrays: Vec<NamedFloats<'_>> =
                arrays.map(|((array, shape), name)| ((*array).to_owned(), shape, values[&**name])).collect();
            folder.file(&format!("{path}/{WEIGHTS}"), |file| write_tensors(&arrays, file))?;
            parts.push(part(parts.len(), &path, "Dense"));
        }
        write_json(folder, MODULES, &Value::from(parts))
    }
}

fn write_json(folder: &OutputFolder, name: &str, value: &Value) -> Result<(), WriteFileError> {
    folder.file(name, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        file.write_all(b"\n")
    })
}

impl TransformerParams {
    /// As `config.json` has it.
    fn config(&self) -> Value {
        let Self { family, vocabulary, first_position, types, width, heads, units, layers, epsilon, .. } = *self;
        let (name, class) = match family {
            Architecture::Bert => ("bert", "BertModel"),
            Architecture::DistilBert => ("distilbert", "DistilBertModel"),
            Architecture::Mpnet => ("mpnet", "MPNetModel"),
            Architecture::Roberta => ("roberta", "RobertaModel"),
            Architecture::XlmRoberta => ("xlm-roberta", "XLMRobertaModel"),
        };
        let mut config = Map::new();
        let mut put = |key: &str, value: Value| drop(config.insert(key.to_owned(), value));
        put("model_type", json!(name));
        put("architectures", json!([class]));
        put("vocab_size", json!(vocabulary));
        put("max_position_embeddings", json!(first_position + self.positions));
        put("pad_token_id", json!(first_position.saturating_sub(1)));
        if family == Architecture::DistilBert {
            put("dim", json!(width));
            put("n_heads", json!(heads));
            put("hidden_dim", json!(units));
            put("n_layers", json!(layers));
            put("activation", json!("gelu"));
            return Value::Object(config);
        }
        put("hidden_size", json!(width));
        put("num_attention_heads", json!(heads));
        put("intermediate_size", json!(units));
        put("num_hidden_layers", json!(layers));
        put("hidden_act", json!("gelu"));
        // The shortest number that is read as this one: 1e-12 rather than 9.999999960041972e-13.
        put("layer_norm_eps", epsilon.to_string().parse().map_or(Value::Null, |eps: f64| json!(eps)));
        if family != Architecture::Mpnet {
            put("type_vocab_size", json!(types));
        }
        if let Some(distances) = self.distances {
            put("relative_attention_num_buckets", json!(distances.buckets));
        }
        Value::Object(config)
    }
}
