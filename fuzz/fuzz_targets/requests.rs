//! A stream of requests and plain lines, as it arrives in pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Read;
use xc_data::*;
use xc_fuzz::options;
use xc_model::InputKind;
use xc_model::requests::{Asked, Request, RequestCode, RequestParser};

const MAX_LINE_BYTES: usize = 200;

/// Gives its bytes in pieces, whose lengths are told by the bytes.
struct Pieces(Vec<u8>);

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let wanted = self.0.first().map_or(0, |&first| 1 + usize::from(first) % 50);
        let n = wanted.min(self.0.len()).min(into.len());
        into[..n].copy_from_slice(&self.0[..n]);
        self.0.drain(..n);
        Ok(n)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let takes = if first & 1 == 0 { InputKind::Text } else { InputKind::Sparse };
    let format = match first >> 1 & 3 {
        0 => Some(Format::Jsonl),
        1 if takes == InputKind::Sparse => Some(Format::Svmlight),
        _ => None,
    };
    let form = FileForm {
        format,
        text_fields: Some(vec!["title".into(), "body".into()]),
        svmlight_base: Some(IndexBase::One),
        ..FileForm::default()
    };
    let options = ReadOptions { form, n_features: Some(100), ..options() };
    let mut parser = RequestParser::new("in", takes, &options, false).unwrap();
    let strict = RequestParser::new("in", takes, &options, true).unwrap();
    let mut blocks = LineBlocks::new("in", Pieces(bytes.to_vec()), Some(1 << 20), MAX_LINE_BYTES).unwrap();
    let (mut request, mut number) = (Request::default(), 0);
    let is_compressed = Compression::of(bytes) != Compression::Plain;
    loop {
        let block = match blocks.next_block() {
            Ok(Some(block)) => block,
            Ok(None) => break,
            Err(_) => {
                assert!(is_compressed, "plain bytes are always read");
                return;
            }
        };
        assert!(!block.is_empty());
        for at in 0..block.len() {
            let line = block.line(at);
            number += 1;
            assert_eq!(line.number(), number);
            let Some(text) = line.text() else { continue };
            assert!(text.len() <= MAX_LINE_BYTES && !text.contains(&b'\n'));
            if number == 1 && parser.header(text).is_ok_and(|is_header| is_header) {
                continue;
            }
            let outcome = parser.parse(text, &mut request);
            let mut same = Request::default();
            // What is strict takes less, and the same.
            match strict.parse(text, &mut same) {
                Ok(()) => assert!(outcome.is_ok() && same == request),
                Err(error) => {
                    let is_plain = text.first() != Some(&b'{') || error.code == RequestCode::UnknownField;
                    assert!(is_plain || outcome.as_ref().is_err_and(|other| other.code == error.code));
                }
            }
            match outcome {
                Err(error) => assert!(!error.to_string().contains('\n'), "{error:?}"),
                Ok(()) => {
                    assert!(request.top_k != Some(0) && request.min_score.is_none_or(f32::is_finite));
                    match &request.asked {
                        Asked::Text(_) => assert_eq!(takes, InputKind::Text),
                        Asked::Features { indices, values } => {
                            assert_eq!(indices.len(), values.len());
                            assert!(indices.is_sorted_by(|a, b| a < b) && indices.iter().all(|&i| i < 100));
                            assert!(values.iter().all(|v| v.is_finite()));
                        }
                        Asked::Vector(values) => assert!(values.iter().all(|v| v.is_finite())),
                    }
                }
            }
            // What an answer carries is JSON whatever the line was.
            let mut answer = Vec::new();
            let notes = AnswerNotes { id: request.id.as_deref(), known_terms: Some(0), warnings: &[] };
            push_prediction_json(&mut answer, &[], None, &notes);
            push_prediction_error(&mut answer, request.id.as_deref(), "what");
            let answer = String::from_utf8(answer).unwrap();
            assert_eq!(answer.lines().count(), 2);
            answer.lines().for_each(|line| _ = serde_json::from_str::<&serde_json::value::RawValue>(line).unwrap());
        }
    }
    if !is_compressed {
        let lines =
            bytes.iter().filter(|&&b| b == b'\n').count() + usize::from(bytes.last().is_some_and(|&b| b != b'\n'));
        assert_eq!(number, lines as u64);
    }
});
