//! `towebp completions`: scripts by which shells complete commands, flags and values.

use super::failure::Failure;
use super::say;
use clap::{Args, ValueEnum};
use clap_complete::aot::{Bash, Fish, Zsh, generate};

/// Appended to the script of bash, which divides --effort=high into three words.
const BASH_EQUALS: &str = r#"
_towebp_equals() {
    if [[ $2 == "=" ]]; then
        set -- "$1" "" "${COMP_WORDS[COMP_CWORD - 1]}"
    elif [[ $3 == "=" ]]; then
        set -- "$1" "$2" "${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    _towebp "$@"
}
complete -F _towebp_equals -o bashdefault -o default towebp
"#;

/// Print a script by which a shell completes commands, flags and values.
#[derive(Args)]
pub(super) struct Completions {
    /// the shell: bash, zsh or fish
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    shell: Supported,
}

#[derive(Clone, Copy, ValueEnum)]
enum Supported {
    Bash,
    Zsh,
    Fish,
}

/// Carries out the command.
///
/// # Errors
/// Standard output takes nothing.
pub(super) fn run(command: &Completions) -> Result<(), Failure> {
    let mut program = super::program();
    let mut script = Vec::new();
    match command.shell {
        Supported::Bash => generate(Bash, &mut program, "towebp", &mut script),
        Supported::Zsh => generate(Zsh, &mut program, "towebp", &mut script),
        Supported::Fish => generate(Fish, &mut program, "towebp", &mut script),
    }
    if let Supported::Bash = command.shell {
        script.extend(BASH_EQUALS.as_bytes());
    }
    Ok(say::write(&script)?)
}
