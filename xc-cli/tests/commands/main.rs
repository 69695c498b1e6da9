//! The program as its users run it: one test binary, a module for each command or promise.

mod absurd;
mod answer_files;
mod architecture;
mod arrays;
mod astra;
mod bad_input;
mod blend;
mod calibrate;
mod change;
#[cfg(unix)]
mod checkpoints;
#[cfg(unix)]
mod cluster_page;
mod evaluate;
mod evaluate_model;
mod every_option;
mod explain;
mod figures;
mod help;
mod idle;
mod index;
mod index_answers;
mod index_files;
mod inputs;
mod inspect;
mod instruction_sets;
mod joined;
mod lengths;
mod lns;
mod logs;
mod main_job;
#[cfg(target_os = "linux")]
mod memory;
mod names_and_ids;
mod networks;
mod one_answer;
mod options;
mod overwritten;
mod parts;
#[cfg(target_os = "linux")]
mod places;
mod program;
#[cfg(unix)]
mod replaced;
#[cfg(unix)]
mod requests;
mod said;
mod scale;
mod skipgram;
#[cfg(unix)]
mod streams;
mod tables;
mod text;
#[cfg(feature = "transformer")]
mod transformer;
mod tune;
mod uniform;
mod vectors;
mod wide;
mod without_transformer;
