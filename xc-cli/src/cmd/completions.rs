//! `xc completions`: shell completion scripts.

use crate::context::Context;
use crate::described::{Scope, within};
use crate::error::CliError;
use crate::output;
use clap::CommandFactory;
use xc_options::Build;

/// Print the completion script for a shell
///
/// bash:  xc completions bash > ~/.local/share/bash-completion/completions/xc
/// zsh:   xc completions zsh > "${fpath[1]}/_xc"
/// fish:  xc completions fish > ~/.config/fish/completions/xc.fish
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args, _: &Context) -> Result<(), CliError> {
    let (mut root, mut script) =
        (crate::help::arrange(within(Scope::All(Build::This), crate::Cli::command)), Vec::new());
    clap_complete::generate(args.shell, &mut root, "xc", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
