//! Where settings stand among parameters.

use super::judge::JudgeParams;
use super::search::LabelSearch;
use super::text::TextSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use xc_ann::BuildParams;
use xc_data::FileForm;
use xc_hash::text::PipelineParams;
use xc_model::Changes;
use xc_model::mach::MachLayout;
use xc_train::astra::AstraParams;
use xc_train::blend::FitParams;
use xc_train::calibrate::CalibrateParams;
use xc_train::fit::Embed;
use xc_train::network::{NetworkParams, RunParams, TextEncoder, UniformParams};
use xc_train::skipgram::WordsParams;
use xc_tree::TreeParams;

/// A value at a place.
pub trait Slot {
    /// In serialised form.
    fn get(&self) -> Value;

    /// Takes another one.
    ///
    /// # Errors
    /// It is none of the type.
    fn put(&mut self, value: &Value) -> Result<(), String>;
}

impl<T: Serialize + DeserializeOwned> Slot for T {
    fn get(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn put(&mut self, value: &Value) -> Result<(), String> {
        *self = serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
        Ok(())
    }
}

/// Where a setting stands among parameters of a type.
pub enum At<P> {
    /// A field by its path; nothing where these parameters have none.
    Field(&'static str, fn(&mut P) -> Option<&mut dyn Slot>),
    /// What several fields say together, or one in another form.
    Form {
        /// What it is called, as a path.
        name: &'static str,
        /// The value, where there is one.
        get: fn(&P) -> Option<Value>,
        /// Puts one in its place.
        put: fn(&mut P, &Value) -> Result<(), String>,
    },
}

impl<P> At<P> {
    /// What the place is called: a dotted path.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Field(name, _) | Self::Form { name, .. } => name,
        }
    }

    /// The value that stands there; nothing where there is no such place.
    pub fn get(&self, params: &P) -> Option<Value>
    where
        P: Clone,
    {
        match self {
            Self::Field(_, at) => at(&mut params.clone()).map(|slot| slot.get()),
            Self::Form { get, .. } => get(params),
        }
    }

    /// Puts a value there. Where there is no such place nothing happens.
    ///
    /// # Errors
    /// It is none of the field.
    pub fn put(&self, params: &mut P, value: &Value) -> Result<(), String> {
        match self {
            Self::Field(_, at) => at(params).map_or(Ok(()), |slot| slot.put(value)),
            Self::Form { put, .. } => put(params, value),
        }
    }
}

/// A field that all parameters of a type have: `field!(training.epochs)`.
macro_rules! field {
    ($first:ident $(.$rest:ident)*) => {
        At::Field(concat!(stringify!($first) $(, ".", stringify!($rest))*), |of| Some(&mut of.$first $(.$rest)*))
    };
}

pub(super) use field;

impl<P> Clone for At<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for At<P> {}

impl<P> fmt::Debug for At<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("At").field(&self.name()).finish()
    }
}

/// Among which parameters a setting stands, and where.
#[derive(Clone, Copy, Debug)]
pub enum SettingPlace {
    /// Among none: what was chosen is read by its name ([`Choices::value`](super::Choices::value)).
    Chosen,
    /// Of what a file holds.
    File(At<FileForm>),
    /// Of trees.
    Tree(At<TreeParams>),
    /// Of the terms of a text.
    Terms(At<TextSettings>),
    /// Of a network.
    Network(At<NetworkParams>),
    /// Of a network with a sparse output layer.
    Uniform(At<UniformParams>),
    /// Of what a run does beside training a network.
    Run(At<RunParams>),
    /// Of an encoder of texts.
    Encoder(At<TextEncoder>),
    /// Of the repetitions of a MACH model.
    Mach(At<MachLayout>),
    /// Of the words that have vectors.
    Words(At<WordsParams>),
    /// Of the words of a text.
    Text(At<PipelineParams>),
    /// Of the negatives of ASTRA.
    Astra(At<AstraParams>),
    /// Of an index.
    Index(At<BuildParams>),
    /// Of a blend.
    Blend(At<FitParams>),
    /// Of a calibration.
    Calibration(At<CalibrateParams>),
    /// Of a search.
    Search(At<LabelSearch>),
    /// Of what is changed about a trained model.
    Change(At<Changes>),
    /// Of an evaluation.
    Judge(At<JudgeParams>),
    /// Of vectors of texts.
    Embed(At<Embed>),
}

/// Parameters in which settings have places.
pub trait Placed: Clone {
    /// Where a setting stands among parameters of this type.
    fn at(place: SettingPlace) -> Option<At<Self>>;
}

macro_rules! placed {
    ($($variant:ident: $of:ty),*) => {
        impl SettingPlace {
            /// What the place is called: a dotted path; nothing where there is none.
            pub const fn name(&self) -> Option<&'static str> {
                match self {
                    Self::Chosen => None,
                    $(Self::$variant(at) => Some(at.name()),)*
                }
            }
        }

        $(impl Placed for $of {
            fn at(place: SettingPlace) -> Option<At<Self>> {
                if let SettingPlace::$variant(at) = place { Some(at) } else { None }
            }
        })*
    };
}

placed!(File: FileForm, Tree: TreeParams, Terms: TextSettings, Network: NetworkParams, Run: RunParams, Uniform: UniformParams, Encoder: TextEncoder, Mach: MachLayout, Words: WordsParams, Text: PipelineParams, Astra: AstraParams, Index: BuildParams, Blend: FitParams, Calibration: CalibrateParams, Search: LabelSearch, Change: Changes, Embed: Embed, Judge: JudgeParams);
