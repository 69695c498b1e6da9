//! The settings of a search among the labels of a model, or among the rows of an index.

use super::{At, Choices, Setting, SettingError, SettingPlace, Slot, Table, Values, field};
use Values::{F32OrInf, Names, Size, Switch, Text};
use serde_json::Value;
use xc_ann::Scope;
use xc_model::{OpenOptions, SearchOptions, UseIndex};

/// How a model is opened to be searched, and how it is searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelSearch {
    /// Of each query.
    pub options: SearchOptions,
    /// What makes scores of margins. Default: the model's.
    pub post_processor: Option<String>,
    /// The repetitions of a MACH model that answer. Default: all.
    pub repetitions: Option<Vec<u32>>,
    /// Steps of training since an index of the labels was built, after which it is used no more.
    pub max_age: Option<u64>,
}

impl LabelSearch {
    /// How the model is opened.
    pub fn opening(&self) -> OpenOptions {
        let index = match self.max_age {
            _ if self.options.exact => UseIndex::Never,
            None => UseIndex::Fresh,
            Some(steps) => UseIndex::UpTo(steps),
        };
        OpenOptions {
            repetitions: self.repetitions.clone(),
            index,
            post_processor: self.post_processor.clone(),
            ..OpenOptions::default()
        }
    }
}

const fn row(name: &'static str, at: At<LabelSearch>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Search(at)).heading("Search options")
}

const INF: &str = "inf";
const AS_FITTED: &str = "as fitted";
const OF_THE_MODEL: &str = "the model's";

const WIDTH: At<LabelSearch> = At::Form {
    name: "scope.width",
    get: |of| match of.options.scope {
        Some(Scope::Cells { .. }) | None => None,
        Some(Scope::Exact) => Some(INF.into()),
        Some(scope) => Some(scope.slack().get()),
    },
    put: |of, value| {
        let mut width = f32::INFINITY;
        if *value != INF {
            width.put(value)?;
        }
        of.options.scope = Some(Scope::width(width));
        Ok(())
    },
};

const CELLS: At<LabelSearch> = At::Form {
    name: "scope.cells",
    get: |of| of.options.scope.map(|scope| scope.n_cells()).filter(|cells| *cells > 0).map(Value::from),
    put: |of, value| {
        let mut cells = 0;
        cells.put(value)?;
        if cells == 0 {
            return Err("1 or more is expected".to_owned());
        }
        of.options.scope = Some(Scope::cells(cells));
        Ok(())
    },
};

const REPETITIONS: At<LabelSearch> = At::Form {
    name: "repetitions",
    get: |of| of.repetitions.as_ref().map(|numbers| numbers.get()),
    put: |of, value| {
        of.repetitions = Some(numbers(value.as_str().unwrap_or_default())?);
        Ok(())
    },
};

const BEAM: Setting = row("beam", field!(options.beam), Size, "B").usual(OF_THE_MODEL).help(
    "Clusters kept per level of a tree: a wider beam is slower and finds more. In the mean of several trees, trees whose \
     beam does not reach a label count 0 for it",
);
const POST_PROCESSOR: Setting =
    row("post-processor", field!(post_processor), Text(|_| Ok(())), "NAME").usual(OF_THE_MODEL).help(
        "Maps margins to scores. Trees: sigmoid, l1-hinge to l9-hinge; a single tree also noop (the margin), log-sigmoid, \
         log-l1-hinge to log-l9-hinge. Networks: softmax, sigmoid, l2-hinge, noop (the logit)",
    );
const DECODER: Setting = row("decoder", field!(options.decoder), Names(&["mean", "min", "median"]), "NAME")
    .usual(OF_THE_MODEL)
    .help("How a MACH model combines bucket scores into a label's score");
const MAX_LABELS: Setting = row("max-labels", field!(options.max_labels), Size, "N")
    .usual("when the answer is certain")
    .help("Stop the decode of a MACH model after about N labels, even if the answer is not certain");
const SEARCH_WIDTH: Setting =
    row("search-width", WIDTH, F32OrInf, "W").usual(AS_FITTED).excludes(&["exact"]).help(
        "Search effort in the index of the labels: higher finds more and is slower. Labels are followed that are further \
         off than the last answer by up to this share of its logit; 16 compares all labels by their codes. Labels have the \
         scores of --exact, but those of softmax are shares among the labels that were found",
    );
const OF_CELLS: Setting = row("cells", CELLS, Size, "N")
    .excludes(&["exact", "search-width"])
    .help("Compare the labels of the N nearest cells of the index instead of searching its graph, if it has cells");
const EXACT: Setting = row("exact", field!(options.exact), Switch, "").help(
    "Score all labels, even if the model has an index of them (without an index, a network always does). Labels that the \
     index finds have the same scores, but those of softmax, which are shares among all labels",
);

/// Places are those of [`LabelSearch`].
pub const TABLE: Table = Table {
    rows: &[
        BEAM,
        POST_PROCESSOR,
        DECODER,
        MAX_LABELS,
        row("repetitions", REPETITIONS, Text(|text| numbers(text).map(drop)), "LIST")
            .help("Use only these repetitions of a MACH model, e.g. 0-3,7"),
        SEARCH_WIDTH,
        OF_CELLS,
        EXACT,
        row("max-age", field!(max_age), Size, "STEPS").excludes(&["exact"]).help(
            "Use an index of the labels even if the weights have been trained for up to this many steps since it was built",
        ),
    ],
    starts: &[],
};

/// Those that each query may have of its own.
pub const OF_QUERY: Table = Table { rows: &[BEAM, DECODER, MAX_LABELS, SEARCH_WIDTH, OF_CELLS, EXACT], starts: &[] };

/// How far an index of vectors is searched.
pub const SCOPE: Table = Table {
    rows: &[
        Setting { heading: None, excludes: &[], ..SEARCH_WIDTH }.help(
            "Search effort in the graph: higher finds more and is slower. Vectors are followed that are further off than \
             the last answer by up to this share of its distance; 16 compares all vectors by their codes",
        ),
        Setting { heading: None, ..OF_CELLS }
            .excludes(&["search-width"])
            .help("Compare the vectors of the N nearest cells instead of searching the graph, if the index has cells"),
    ],
    starts: &[],
};

/// What was chosen of a search.
///
/// # Errors
/// Settings that exclude each other, or a number out of range, by the name of its setting.
pub fn params(choices: &Choices) -> Result<LabelSearch, SettingError> {
    choices.refuse_conflicts()?;
    TABLE.place(LabelSearch::default(), choices)
}

/// What was chosen of how far an index is searched; nothing: as fitted.
///
/// # Errors
/// As [`params`].
pub fn scope(choices: &Choices) -> Result<Option<Scope>, SettingError> {
    choices.refuse_conflicts()?;
    Ok(SCOPE.place(LabelSearch::default(), choices)?.options.scope)
}

/// Numbers and ranges of them: `0-3,7`.
fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds: Option<(u32, u32)> = first.trim().parse().ok().zip(last.trim().parse().ok());
        match bounds {
            Some((first, last)) if first <= last && last - first < 1 << 16 => numbers.extend(first..=last),
            _ => return Err(format!("got {part:?}, expected numbers and ranges such as 0-3,7")),
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_named_by_numbers_and_ranges() {
        assert_eq!(numbers("0-3, 7"), Ok(vec![0, 1, 2, 3, 7]));
        for text in ["", "3-1", "a", "1-", "-1", "0..3", "0-4000000000"] {
            assert!(numbers(text).unwrap_err().contains("expected numbers and ranges"), "{text}");
        }
    }

    #[test]
    fn every_row_leads_to_a_place_of_its_own_and_changes_it() {
        let usual = LabelSearch::default();
        for row in TABLE.rows {
            let value = row.names().map_or("7", |names| names[0]);
            let value = if matches!(row.values, Switch) { "true" } else { value };
            let made = params(&TABLE.given([(row.name, value)]).unwrap()).unwrap();
            assert_eq!(row.shown_in(&made).as_deref(), Some(value), "{}", row.name);
            let changed = TABLE.rows.iter().filter(|other| other.shown_in(&made) != other.shown_in(&usual));
            assert_eq!(changed.map(|other| other.name).collect::<Vec<_>>(), [row.name]);
        }
        for (width, scope) in [("inf", Scope::Exact), ("-0.25", Scope::width(-0.25)), ("16", Scope::width(16.0))] {
            let made = params(&TABLE.given([("search-width", width)]).unwrap()).unwrap();
            assert_eq!((made.options.scope, SEARCH_WIDTH.shown_in(&made).as_deref()), (Some(scope), Some(width)));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_name() {
        for (given, expected) in [
            (&[("cells", "0")][..], "--cells 0: 1 or more is expected"),
            (&[("beam", "-1")], "--beam -1: expected a number from 0 on, without a fraction"),
            (&[("cells", "2"), ("search-width", "1")], "--cells: cannot be used with --search-width"),
            (&[("max-age", "2"), ("exact", "true")], "--max-age: cannot be used with --exact"),
        ] {
            let made = TABLE.given(given.iter().copied()).and_then(|choices| params(&choices));
            assert_eq!(made.unwrap_err().to_string(), expected);
        }
    }
}
