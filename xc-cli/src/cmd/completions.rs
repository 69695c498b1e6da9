//! `xc completions`: shell completion scripts.

use crate::context::Context;
use crate::error::CliError;
use crate::output;
use clap::CommandFactory;

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
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::help::arrange(crate::Cli::command()), "xc", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
