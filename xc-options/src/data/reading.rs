//! From a source to rows and labels in memory.

use super::source::MEMORY_LABELS;
use super::{
    Files, KnownLabels, LabelsFrom, Source, VectorSource, add_label_rows, in_order_of_labels, read_labelled,
    read_numbers, read_training, read_vectors, report_alike, vector_source,
};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use xc_data::{FileForm, HoldOut, LabelNames, UnknownLabels};
use xc_hash::text::Featurizer;
use xc_model::OwnedRows;
use xc_sparse::CsrMatrix;
use xc_train::fit::data::{Dataset, Datasets, Making};
use xc_train::fit::{ArrayReader, Arrays, Context, FeatureParams, FitError, Given, TreeInputs};

/// A transformer that reads texts.
pub struct TextReader {
    /// What makes tokens or vectors of them.
    pub maker: Featurizer,
    /// Whether features of all words stand beside the tokens.
    pub words: bool,
    /// The option that asked for it: `encoder frozen`.
    pub option: String,
    /// What is to be said of what its folder asks for.
    pub notes: Vec<String>,
}

/// A source, and how it is read.
pub struct Reading<'a> {
    /// Where the instances are.
    pub source: &'a Source,
    /// Training instances that are not copied, in place of those of `source`.
    pub given: Option<&'a Given>,
    /// What files hold.
    pub form: FileForm,
    /// How texts and rows become features.
    pub features: FeatureParams,
    /// The option that asked for rows to be weighted or scaled, with which networks refuse vectors.
    pub weighted_by: Option<&'static str>,
    /// Whether vectors are taken as rows of features, without those that are 0.
    pub vectors_as_rows: bool,
    /// What reads texts, where a transformer does.
    pub transformer: Option<TextReader>,
}

impl Reading<'_> {
    fn fitting(&self, hold_out: Option<HoldOut>) -> Making<'_> {
        let text = &self.features.text;
        match &self.transformer {
            Some(TextReader { maker: Featurizer::Tokens(tokens), words: true, .. }) => {
                Making::Fit { text, weighting: None, hold_out, tokens: Some(tokens) }
            }
            Some(TextReader { maker, .. }) => Making::Apply { maker: Some(maker), n_features: maker.n_features() },
            None => Making::Fit { text, weighting: self.features.weighting, hold_out, tokens: None },
        }
    }

    /// Reads everything, and says which instances are held out.
    ///
    /// # Errors
    /// Files that cannot be read, by their line; instances that nothing can be learned from, or that `hold_out` does not part.
    pub fn read(&self, hold_out: Option<HoldOut>, context: &Context<'_>) -> Result<Datasets, FitError> {
        self.transformer.iter().flat_map(|reader| &reader.notes).for_each(|line| context.note(line));
        let (train, validation) = match self.source {
            Source::Files(files) => self.read_files(files, hold_out, context)?,
            Source::Memory(arrays) => self.take_arrays(arrays, hold_out, context)?,
        };
        let mut sets = std::iter::once(&train).chain(&validation);
        if let Some(TextReader { option, .. }) = &self.transformer
            && sets.any(|set| !set.of_texts)
        {
            return Err(FitError::usage(format_args!("--{option}: instances are no texts, which are expected")));
        }
        report_alike(self.source.name(), train.names.as_deref(), context);
        let split = hold_out.map(|hold_out| train.split(self.source.name(), hold_out)).transpose()?;
        Ok(Datasets { train, validation, split, label_texts: None })
    }

    fn take_arrays(
        &self,
        arrays: &Arrays,
        hold_out: Option<HoldOut>,
        context: &Context<'_>,
    ) -> Result<(Dataset, Option<Dataset>), FitError> {
        let Arrays { train, validation, .. } = arrays;
        self.memory(context).datasets(train, validation.as_ref(), self.fitting(hold_out))
    }

    fn memory<'m>(&'m self, context: &'m Context<'m>) -> ArrayReader<'m> {
        ArrayReader { given: self.given, vectors_as_rows: self.vectors_as_rows, context }
    }

    /// Appends texts or features of labels, where there are some, as instances of these labels.
    ///
    /// # Errors
    /// They cannot be read, or are not one a label.
    pub fn add_label_rows(&self, sets: &mut Datasets, context: &Context<'_>) -> Result<(), FitError> {
        if !self.source.has_label_features() {
            return Ok(());
        }
        let making = Making::Apply { maker: sets.train.maker.as_ref(), n_features: sets.train.width() };
        let (names, n_labels) = (sets.train.names.as_deref(), sets.train.labels.n_labels());
        let (rows, name) = self.label_rows(making, names, n_labels, context)?;
        sets.label_texts = Some(add_label_rows(&mut sets.train, &rows.features, &name)?);
        Ok(())
    }

    /// Reads what trees are learned from.
    ///
    /// # Errors
    /// As [`Reading::read`]; numbers that are not one an instance or a label.
    pub fn read_for_trees(&self, hold_out: Option<HoldOut>, context: &Context<'_>) -> Result<TreeInputs, FitError> {
        let instances = self.read(hold_out, context)?;
        let (n_read, n_labels) = (instances.train.len(), instances.train.labels.n_labels());
        let label_features = self.label_features(instances.train.names.as_deref(), n_labels, context)?;
        let [instance_weights, label_costs] = self.numbers(n_read, n_labels)?;
        Ok(TreeInputs::new(instances, label_features, instance_weights, label_costs))
    }

    /// Texts or features of labels made into features of their own, where there are some.
    fn label_features(
        &self,
        names: Option<&[String]>,
        n_labels: usize,
        context: &Context<'_>,
    ) -> Result<Option<CsrMatrix>, FitError> {
        if !self.source.has_label_features() {
            return Ok(None);
        }
        let making = Making::Fit { text: &self.features.text, weighting: None, hold_out: None, tokens: None };
        let (rows, name) = self.label_rows(making, names, n_labels, context)?;
        let rows = rows.into_sparse();
        let got = rows.rows();
        if got != n_labels {
            return Err(FitError::usage(format_args!(
                "{}: {got} rows; one for each of the {n_labels} labels is expected",
                name.display()
            )));
        }
        Ok(Some(rows))
    }

    fn label_rows(
        &self,
        making: Making<'_>,
        names: Option<&[String]>,
        n_labels: usize,
        context: &Context<'_>,
    ) -> Result<(Dataset, PathBuf), FitError> {
        match self.source {
            Source::Files(files) => {
                let path = files.label_features.clone().unwrap_or_default();
                let input = self.form.of_any_format();
                let (from, unknown) = (LabelsFrom::Nowhere, UnknownLabels::Drop);
                let rows = read_labelled(&path, from, None, unknown, &input, making, context)?;
                let rows = in_order_of_labels(rows, &path, &input, names, n_labels, context)?;
                Ok((rows, path))
            }
            Source::Memory(arrays) => {
                let name = Path::new(MEMORY_LABELS);
                let Some(rows) = &arrays.label_features else {
                    return Err(FitError::usage(format_args!("{MEMORY_LABELS}: expected")));
                };
                if matches!(rows, OwnedRows::Dense(_)) {
                    return Err(FitError::usage(format_args!(
                        "{MEMORY_LABELS}: vectors; sparse rows or texts are expected"
                    )));
                }
                Ok((self.memory(context).features(name, Cow::Borrowed(rows), making)?, name.to_owned()))
            }
        }
    }

    /// Weights of the instances and costs of the labels, where they were given: one for each of `n_instances` and
    /// `n_labels`.
    fn numbers(&self, n_instances: usize, n_labels: usize) -> Result<[Option<Vec<f32>>; 2], FitError> {
        let is_weight = |weight: f32| weight.is_finite() && weight >= 0.0;
        let is_cost = |cost: f32| cost.is_finite() && cost > 0.0;
        let (weights, costs, names) = match self.source {
            Source::Files(files) => {
                let weights = files.instance_weights.as_deref();
                let weights = weights.map(|path| read_numbers(path, "of 0 or more", is_weight)).transpose()?;
                let costs = files.label_costs.as_deref();
                let costs = costs.map(|path| read_numbers(path, "above 0", is_cost)).transpose()?;
                let shown =
                    |path: &Option<PathBuf>| path.as_ref().map_or_else(String::new, |p| p.display().to_string());
                (weights, costs, [shown(&files.instance_weights), shown(&files.label_costs)])
            }
            Source::Memory(arrays) => {
                let Arrays { instance_weights, label_costs, .. } = &**arrays;
                let names = ["instance weights".to_owned(), "label costs".to_owned()];
                let is_wrong = |numbers: &Option<Vec<f32>>, fits: &dyn Fn(f32) -> bool| {
                    numbers.iter().flatten().position(|&number| !fits(number))
                };
                for (at, name, which) in [
                    (is_wrong(instance_weights, &is_weight), &names[0], "of 0 or more"),
                    (is_wrong(label_costs, &is_cost), &names[1], "above 0"),
                ] {
                    if let Some(at) = at {
                        return Err(FitError::usage(format_args!("{name}: number {at}: expected one number {which}")));
                    }
                }
                (instance_weights.clone(), label_costs.clone(), names)
            }
        };
        for (numbers, name, expected, what) in
            [(&weights, &names[0], n_instances, "instances"), (&costs, &names[1], n_labels, "labels")]
        {
            if let Some(numbers) = numbers.as_ref().filter(|numbers| numbers.len() != expected) {
                return Err(FitError::usage(format_args!(
                    "{name}: {} numbers; one for each of the {expected} {what} is expected",
                    numbers.len()
                )));
            }
        }
        Ok([weights, costs])
    }

    /// Reads everything that is named. Vectors and sparse features do not go together.
    fn read_files(
        &self,
        files: &Files,
        hold_out: Option<HoldOut>,
        context: &Context<'_>,
    ) -> Result<(Dataset, Option<Dataset>), FitError> {
        let format = self.form.format;
        let (labels, features) = (files.train_labels.as_deref(), files.features.as_deref());
        if self.vectors_as_rows {
            self.open_all(files)?;
            return self.read_row_files(files, hold_out, context);
        }
        let train = vector_source(&files.train, labels, features, format, "train")?;
        let validation = match &files.validation {
            Some(main) => {
                let (labels, features) = (files.validation_labels.as_deref(), files.validation_features.as_deref());
                vector_source(main, labels, features, format, "validation")?
            }
            None => None,
        };
        self.open_all(files)?;
        match train {
            Some(train) => self.read_vector_files(files, train, validation, context),
            None => {
                if let Some(source) = validation {
                    return Err(FitError::usage(format_args!(
                        "{}: vectors, but the training instances of {} are sparse features; both are expected in one form",
                        source.vectors.display(),
                        files.train.display()
                    )));
                }
                self.read_row_files(files, hold_out, context)
            }
        }
    }

    /// Files are looked at first: a wrong name should not cost the reading of a large one.
    fn open_all(&self, files: &Files) -> Result<(), FitError> {
        files.all().try_for_each(|path| std::fs::File::open(path).map(drop).map_err(|e| FitError::input(path, &e)))
    }

    fn read_row_files(
        &self,
        files: &Files,
        hold_out: Option<HoldOut>,
        context: &Context<'_>,
    ) -> Result<(Dataset, Option<Dataset>), FitError> {
        let (labels, making) = (files.train_labels.as_deref(), self.fitting(hold_out));
        let train = read_training(&files.train, labels, &files.names, &self.form, making, context)?;
        let validation = files.validation.as_ref().map(|path| {
            let (names, labels) = (known_names(&train), files.validation_labels.as_deref());
            let making = Making::Apply { maker: train.maker.as_ref(), n_features: train.width() };
            let unknown = UnknownLabels::Append;
            let set = read_labelled(path, labels.into(), names.as_ref(), unknown, &self.form, making, context)?;
            if set.len() == 0 {
                return Err(FitError::usage(format_args!("{}: no instance; at least one is expected", path.display())));
            }
            Ok(set)
        });
        let validation = validation.transpose()?;
        Ok((train, validation))
    }

    fn read_vector_files(
        &self,
        files: &Files,
        train: VectorSource<'_>,
        validation: Option<VectorSource<'_>>,
        context: &Context<'_>,
    ) -> Result<(Dataset, Option<Dataset>), FitError> {
        if let Some(option) = self.weighted_by {
            return Err(FitError::usage(format_args!("--{option}: vectors are used as they are")));
        }
        let names = files.names.read()?;
        let known = KnownLabels { names: names.as_ref(), unknown: UnknownLabels::Refuse };
        let learned = read_vectors(&train, &known, &self.form, context)?;
        if learned.labels.nnz() == 0 {
            return Err(FitError::usage(format_args!(
                "{}: no instance has a label; at least one label is expected",
                train.labels.display()
            )));
        }
        let validation = match (validation, &files.validation) {
            (Some(source), _) => {
                let names = known_names(&learned);
                let known = KnownLabels { names: names.as_ref(), unknown: UnknownLabels::Append };
                let held_out = read_vectors(&source, &known, &self.form, context)?;
                let (got, expected) = (held_out.width(), learned.width());
                if got != expected {
                    return Err(FitError::usage(format_args!(
                        "{}: vectors of {got} values; those of {} have {expected}",
                        source.vectors.display(),
                        train.vectors.display()
                    )));
                }
                Some(held_out)
            }
            (None, Some(main)) => {
                return Err(FitError::usage(format_args!(
                    "{}: no vectors; --validation-features FILE.npy is expected, since the training instances are vectors",
                    main.display()
                )));
            }
            (None, None) => None,
        };
        Ok((learned, validation))
    }
}

/// The names of a training set, which came out of a dictionary that has each once.
fn known_names(train: &Dataset) -> Option<LabelNames> {
    train.names.clone().and_then(|names| LabelNames::try_new(names).ok())
}
