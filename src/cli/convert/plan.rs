//! Which input goes where, settled before anything is converted.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// The name by which an input is standard input, besides `-`.
pub const STANDARD_INPUT: &str = "/dev/stdin";

/// The name by which an output is standard output, besides `-`. It is not opened anew: a socket cannot be, and a file
/// would be written from its beginning.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Where a picture comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    StandardInput,
    File(PathBuf),
}

/// Where a WebP goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    StandardOutput,
    File(PathBuf),
}

/// One input and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) source: Source,
    pub(super) target: Target,
}

/// Gives each input its output.
///
/// # Errors
/// A sentence for the user: no input, standard input or output among many, two inputs with one output, or an output that
/// is an input.
pub(super) fn plan(inputs: &[String], output: Option<&str>) -> Result<Vec<Step>, String> {
    let sources: Vec<Source> = inputs.iter().map(|input| Source::new(input)).collect();
    let steps: Vec<Step> = match sources.as_slice() {
        [] => return Err("no input was given; allowed are one or more pictures, or -".to_owned()),
        [source] => vec![Step {
            source: source.clone(),
            target: single_target(source, output),
        }],
        many if many.contains(&Source::StandardInput) => {
            return Err("- (standard input) must be the only input".to_owned());
        }
        _ if matches!(output, Some("-" | STANDARD_OUTPUT)) => {
            return Err(
                "-o - (standard output) takes one input; for many give a folder".to_owned(),
            );
        }
        many => many
            .iter()
            .map(|source| Step {
                source: source.clone(),
                target: target_in(source, output.map(Path::new)),
            })
            .collect(),
    };
    check_targets(&steps)?;
    Ok(steps)
}

impl Source {
    fn new(input: &str) -> Source {
        match input {
            "-" | STANDARD_INPUT => Source::StandardInput,
            path => Source::File(PathBuf::from(path)),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::StandardInput => f.write_str("standard input"),
            Source::File(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::StandardOutput => f.write_str("standard output"),
            Target::File(path) => path.display().fmt(f),
        }
    }
}

/// One input goes to the file named, into the folder named, or beside itself.
fn single_target(source: &Source, output: Option<&str>) -> Target {
    match output {
        Some("-" | STANDARD_OUTPUT) => Target::StandardOutput,
        Some(folder) if folder.ends_with('/') || Path::new(folder).is_dir() => {
            target_in(source, Some(Path::new(folder)))
        }
        Some(file) => Target::File(PathBuf::from(file)),
        None => target_in(source, None),
    }
}

/// The input's name with the ending `.webp`, in `folder` or beside the input.
fn target_in(source: &Source, folder: Option<&Path>) -> Target {
    match (source, folder) {
        (Source::StandardInput, None) => Target::StandardOutput,
        (Source::StandardInput, Some(folder)) => Target::File(folder.join("stdin.webp")),
        (Source::File(path), None) => Target::File(path.with_extension("webp")),
        (Source::File(path), Some(folder)) => {
            let name = path.with_extension("webp");
            Target::File(folder.join(name.file_name().unwrap_or(name.as_os_str())))
        }
    }
}

fn check_targets(steps: &[Step]) -> Result<(), String> {
    let files = |step: &Step| match &step.source {
        Source::File(path) => Some(identity(path)),
        Source::StandardInput => None,
    };
    let inputs: HashSet<PathBuf> = steps.iter().filter_map(files).collect();
    let mut taken: HashMap<PathBuf, &Source> = HashMap::new();
    for step in steps {
        let Target::File(target) = &step.target else {
            continue;
        };
        let target = identity(target);
        if inputs.contains(&target) {
            return Err(format!(
                "{} would overwrite an input; give another -o",
                step.target
            ));
        }
        if let Some(other) = taken.insert(target, &step.source) {
            return Err(format!(
                "{other} and {} would both become {}",
                step.source, step.target
            ));
        }
    }
    Ok(())
}

/// A path that is the same for the same file, as far as its folders exist.
fn identity(path: &Path) -> PathBuf {
    let in_its_folder = || {
        let folder = match path.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder?,
        };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize()
        .ok()
        .or_else(in_its_folder)
        .or_else(|| std::path::absolute(path).ok())
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(inputs: &[&str], output: Option<&str>) -> Result<Vec<String>, String> {
        let inputs: Vec<String> = inputs.iter().map(|&input| input.to_owned()).collect();
        Ok(plan(&inputs, output)?
            .iter()
            .map(|step| step.target.to_string())
            .collect())
    }

    #[test]
    fn outputs_take_the_inputs_names() {
        assert_eq!(targets(&["x/a.png"], None), Ok(vec!["x/a.webp".to_owned()]));
        assert_eq!(
            targets(&["x/a.b.png"], Some("out/")),
            Ok(vec!["out/a.b.webp".to_owned()])
        );
        assert_eq!(
            targets(&["a.png"], Some("c.bin")),
            Ok(vec!["c.bin".to_owned()])
        );
        assert_eq!(
            targets(&["a.png", "x/b"], Some("out")),
            Ok(vec!["out/a.webp".to_owned(), "out/b.webp".to_owned()])
        );
        assert_eq!(
            targets(&["a.png", "x/b"], None),
            Ok(vec!["a.webp".to_owned(), "x/b.webp".to_owned()])
        );
    }

    #[test]
    fn one_input_goes_into_a_folder_that_exists() {
        let folder = std::env::temp_dir();
        let folder = folder
            .to_str()
            .expect("the temporary folder's name is UTF-8");
        let target = targets(&["a.png"], Some(folder)).expect("a valid plan");
        assert_eq!(Path::new(&target[0]), Path::new(folder).join("a.webp"));
    }

    #[test]
    fn standard_streams_stand_alone() {
        for input in ["-", STANDARD_INPUT] {
            assert_eq!(
                targets(&[input], None),
                Ok(vec!["standard output".to_owned()])
            );
            assert_eq!(
                targets(&[input], Some("a.webp")),
                Ok(vec!["a.webp".to_owned()])
            );
        }
        for output in ["-", STANDARD_OUTPUT] {
            assert_eq!(
                targets(&["a.png"], Some(output)),
                Ok(vec!["standard output".to_owned()])
            );
        }
        assert!(targets(&["a.png", "-"], Some("out")).is_err());
        assert!(targets(&["a.png", "b.png"], Some("-")).is_err());
        assert!(targets(&[], None).is_err());
    }

    #[test]
    fn two_inputs_never_share_an_output() {
        assert_eq!(
            targets(&["x/a.png", "y/a.jpg"], Some("out")),
            Err("x/a.png and y/a.jpg would both become out/a.webp".to_owned())
        );
        assert!(targets(&["a.png", "./a.jpg"], None).is_err());
        assert!(targets(&["a.png", "a.png"], None).is_err());
    }

    #[test]
    fn an_input_is_never_overwritten() {
        assert!(targets(&["a.webp"], None).is_err());
        assert!(targets(&["a.png"], Some("./a.png")).is_err());
        assert!(targets(&["x/a.png", "a.webp"], Some(".")).is_err());
    }
}
