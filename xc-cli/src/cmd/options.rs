//! `xc options`: the options of all commands as pages, as man pages, and as a JSON schema of `--config` files.

mod page;
mod schema;

use crate::context::Context;
use crate::described::{Scope, within};
use crate::error::CliError;
use crate::output::{self, Output};
use clap::{CommandFactory, ValueEnum};
use std::path::{Path, PathBuf};
use xc_options::Build;

/// Write the options of all commands as pages, man pages or a JSON schema
///
/// pages:  a page of Markdown for each command, and README.md
/// man:    a man page for each command
/// schema: config.schema.json, which editors check and complete files of --config with
///
/// Examples:
///   xc options man --output ~/.local/share/man/man1
///   xc options schema --output .
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// What is written
    what: What,
    /// Folder for the files
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Pages,
    Man,
    Schema,
}

/// A command without subcommands, and how it is called: `train tree`.
type Leaf<'a> = (String, &'a clap::Command);

pub(crate) fn run(args: &Args, _: &Context) -> Result<(), CliError> {
    let mut root = crate::help::arrange(within(Scope::All(Build::Whole), crate::Cli::command));
    root.build();
    output::make_folder(&args.output)?;
    let put = |name: &str, text: &[u8]| write(&args.output.join(name), text);
    match args.what {
        What::Pages => {
            let leaves = leaves(&root);
            put("README.md", page::index(&root, &leaves).as_bytes())?;
            leaves.iter().try_for_each(|leaf| put(&page::name(&leaf.0), page::page(leaf).as_bytes()))
        }
        What::Man => {
            put("xc.1", &man(&root, "xc")?)?;
            leaves(&root).into_iter().try_for_each(|(path, command)| {
                let name = format!("xc-{}", path.replace(' ', "-"));
                put(&format!("{name}.1"), &man(command, &name)?)
            })
        }
        What::Schema => put("config.schema.json", format!("{:#}\n", schema::of(&leaves(&root))).as_bytes()),
    }
}

fn man(command: &clap::Command, name: &str) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    let of = clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("xc ", env!("CARGO_PKG_VERSION")));
    of.render(&mut text).map_err(|e| CliError::failed(format_args!("{name}: {e}")))?;
    Ok(text)
}

/// Commands without subcommands, in the order of the help.
fn leaves(root: &clap::Command) -> Vec<Leaf<'_>> {
    fn add<'a>(command: &'a clap::Command, path: &str, out: &mut Vec<Leaf<'a>>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            match sub.has_subcommands() {
                true => add(sub, &path, out),
                false => out.push((path, sub)),
            }
        }
    }
    let mut out = Vec::new();
    add(root, "", &mut out);
    out
}

/// Options that a command lists, but those of every command.
fn listed(command: &clap::Command) -> impl Iterator<Item = &clap::Arg> {
    let is_own = |arg: &&clap::Arg| {
        !arg.is_hide_set() && !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str())
    };
    command.get_arguments().filter(is_own)
}

fn write(path: &Path, text: &[u8]) -> Result<(), CliError> {
    let mut file = Output::create(path)?;
    file.put(text)?;
    file.commit()
}
