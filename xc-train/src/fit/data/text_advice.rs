//! Why texts have few features or none, and which option gives them more.

use super::text_source::TextSource;
use xc_data::{HoldOut, ReadError, hash_text};
use xc_hash::text::{Block, DfBound, Grams, Pipeline, PipelineParams, Slots, VocabularyParams};

/// Texts that other options are tried on, at most.
const TRIED: usize = 10_000;
/// Terms below which it is asked whether other options keep more.
const FEW_TERMS: usize = 100;

/// What a pipeline makes of the texts that it is fitted to.
#[derive(Clone, Copy)]
struct Outcome {
    terms: usize,
    texts_without: usize,
}

/// Says what is wrong where many texts have no feature, or few terms are kept; nothing where all is well.
///
/// *Cost*: none where all is well; else some texts are read again, and pipelines fitted to them.
pub(crate) fn warning(
    source: &TextSource<'_>,
    params: &PipelineParams,
    hold_out: Option<HoldOut>,
    (n_features, n_texts, n_empty): (usize, usize, usize),
) -> Option<String> {
    let name = source.name().display();
    if n_empty * 10 > n_texts {
        let advice = Advice::of(source, params, hold_out).ok()?;
        let more = advice.for_texts().map(|advice| format!("; {advice}")).unwrap_or_default();
        return Some(format!(
            "{name}: {n_empty} of {n_texts} texts are without a feature: nothing is learned from their words{more}"
        ));
    }
    let learns = params.blocks.iter().any(|block| matches!(block.slots, Slots::Vocabulary(_)));
    if !learns || n_features >= FEW_TERMS {
        return None;
    }
    let more = Advice::of(source, params, hold_out).ok()?.for_terms(n_features)?;
    let only = if n_features == 1 { "1 term is".to_owned() } else { format!("{n_features} terms are") };
    Some(format!("{name}: only {only} kept as features; {more}"))
}

/// Which option helps where no feature is left; empty if none does.
pub(crate) fn remedy(source: &TextSource<'_>, params: &PipelineParams, hold_out: Option<HoldOut>) -> String {
    let advice = Advice::of(source, params, hold_out).ok();
    advice.and_then(|advice| advice.for_terms(0)).map(|more| format!("; {more}")).unwrap_or_default()
}

/// Other options, and what they make of the texts.
struct Advice {
    n_texts: usize,
    given: Option<Outcome>,
    tried: Vec<(String, Outcome)>,
    spaces: bool,
}

impl Advice {
    fn of(source: &TextSource<'_>, params: &PipelineParams, hold_out: Option<HoldOut>) -> Result<Self, ReadError> {
        let mut texts: Vec<String> = Vec::new();
        for block in source.blocks()? {
            let block = block?.instances.into_iter().map(|instance| instance.text);
            texts.extend(block.filter(|text| hold_out.is_none_or(|hold_out| !hold_out.takes(hash_text(text)))));
            if texts.len() >= TRIED {
                texts.truncate(TRIED);
                break;
            }
        }
        let pieces: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
        let spaces = 2 * pieces >= 3 * texts.len();
        let tried = others(params, spaces).into_iter();
        let tried = tried.filter_map(|(said, params)| Some((said, outcome(&params, &texts)?))).collect();
        Ok(Self { n_texts: texts.len(), given: outcome(params, &texts), tried, spaces })
    }

    /// The option that gives most texts a feature.
    fn for_texts(&self) -> Option<String> {
        let given = self.given.map_or(self.n_texts, |given| given.texts_without);
        let helps = |(_, of): &&(String, Outcome)| 2 * of.texts_without < given;
        let enough = self.tried.iter().find(|(_, of)| of.texts_without * 10 <= self.n_texts.min(given));
        let best = enough.or_else(|| self.tried.iter().filter(helps).min_by_key(|(_, of)| of.texts_without));
        best.map(|(said, of)| {
            let why = if self.spaces { "" } else { " (texts without spaces between words)" };
            match of.texts_without {
                0 => format!("{said} keeps {} terms and gives every text features{why}", of.terms),
                n => {
                    format!("{said} keeps {} terms and leaves {n} of {} texts without one{why}", of.terms, self.n_texts)
                }
            }
        })
    }

    /// The option that keeps several times as many terms.
    fn for_terms(&self, n_features: usize) -> Option<String> {
        let more = self.tried.iter().find(|(_, of)| of.terms >= (4 * n_features).max(n_features + 4));
        let more = more.or_else(|| self.tried.iter().find(|(_, of)| n_features == 0 && of.terms > 0));
        more.map(|(said, of)| format!("{said} keeps {}", of.terms))
    }
}

/// Options that may keep more of a text than these parameters, by what is typed, the smaller change first.
fn others(params: &PipelineParams, spaces: bool) -> Vec<(String, PipelineParams)> {
    let vocabularies = |params: &mut PipelineParams| {
        let slots = params.blocks.iter_mut().map(|block| &mut block.slots);
        for slots in slots {
            if let Slots::Vocabulary(vocabulary) = slots {
                vocabulary.min_df = DfBound::Count(1);
            }
        }
    };
    let is_rare = |block: &Block| matches!(block.slots, Slots::Vocabulary(v) if v.min_df != DfBound::Count(1));
    let has_chars = |block: &Block| matches!(block.grams, Grams::CharsInWords { .. } | Grams::Chars { .. });
    let with_rare = params.blocks.iter().any(is_rare);
    let with_short = params.min_token_chars > 1;
    let with_chars = !spaces && !params.blocks.iter().any(has_chars);
    let mut out = Vec::new();
    let mut add = |short: bool, chars: bool, rare: bool| {
        let mut changed = params.clone();
        let mut said = Vec::new();
        if short {
            changed.min_token_chars = 1;
            said.push("--text.min-chars 1");
        }
        if chars {
            let slots =
                params.blocks.first().map_or(Slots::Vocabulary(VocabularyParams::default()), |block| block.slots);
            changed.blocks.push(Block { grams: Grams::CharsInWords { min: 1, max: 3 }, slots, scale: 1.0 });
            said.push("--text.chars 1-3");
        }
        if rare {
            vocabularies(&mut changed);
            said.push("--text.min-df 1");
        }
        out.push((said.join(" "), changed));
    };
    for (short, chars, rare) in [
        (true, false, false),
        (false, true, false),
        (true, true, false),
        (false, false, true),
        (true, false, true),
        (false, true, true),
        (true, true, true),
    ] {
        if (!short || with_short) && (!chars || with_chars) && (!rare || with_rare) {
            add(short, chars, rare);
        }
    }
    out
}

fn outcome(params: &PipelineParams, texts: &[String]) -> Option<Outcome> {
    let pipeline = Pipeline::fit(params.clone(), texts).ok()?;
    let rows = pipeline.transform_batch(texts);
    let texts_without = rows.iter().filter(|row| row.0.is_empty()).count();
    Some(Outcome { terms: pipeline.n_features(), texts_without })
}
