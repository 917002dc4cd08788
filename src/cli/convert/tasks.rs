//! Which input becomes which output, decided before anything is converted.

use crate::image::Format;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// The name of standard input, besides `-`.
pub const STANDARD_INPUT: &str = "/dev/stdin";

/// The name of standard output, besides `-`. It is not opened by this name, since a socket cannot
/// be opened, and a file would be written from its beginning.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Where a picture is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    StandardInput,
    File(PathBuf),
}

/// Where a WebP is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    StandardOutput,
    File(PathBuf),
}

/// One input and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) input: Input,
    pub(super) target: Target,
}

/// Chooses the output of each input.
///
/// # Errors
/// A sentence for the user: no input, standard input or output among many, two inputs with one
/// output, or an output that is an input.
pub(super) fn tasks(inputs: &[String], output: Option<&str>) -> Result<Vec<Task>, String> {
    let inputs: Vec<Input> = inputs.iter().map(|input| Input::new(input)).collect();
    let tasks: Vec<Task> = match inputs.as_slice() {
        [] => return Err("no input was given; allowed are one or more pictures, or -".to_owned()),
        [input] => vec![Task {
            input: input.clone(),
            target: single_target(input, output),
        }],
        many if many.contains(&Input::StandardInput) => {
            return Err("- (standard input) must be the only input".to_owned());
        }
        _ if matches!(output, Some("-" | STANDARD_OUTPUT)) => {
            return Err(
                "-o - (standard output) takes one input; for many give a folder".to_owned(),
            );
        }
        many => many
            .iter()
            .map(|input| Task {
                input: input.clone(),
                target: target_in(input, output.map(Path::new)),
            })
            .collect(),
    };
    check_targets(&tasks)?;
    Ok(tasks)
}

impl Task {
    /// Where the input itself is written in place of its WebP: the same name with the ending of the
    /// input's own name, or that of its format.
    pub(super) fn target_of_original(&self, bytes: &[u8]) -> Target {
        let Target::File(path) = &self.target else {
            return Target::StandardOutput;
        };
        let own = match &self.input {
            Input::File(input) => input.extension(),
            Input::StandardInput => None,
        };
        let ending = Format::sniff(bytes).map_or("", Format::ending);
        Target::File(path.with_extension(own.unwrap_or(ending.as_ref())))
    }

    /// Whether a path leads to the input.
    pub(super) fn is_input(&self, path: &Path) -> bool {
        let Input::File(input) = &self.input else {
            return false;
        };
        let file = |path: &Path| fs::canonicalize(path).ok();
        path == input || file(path).is_some_and(|found| file(input) == Some(found))
    }
}

impl Input {
    fn new(name: &str) -> Input {
        match name {
            "-" | STANDARD_INPUT => Input::StandardInput,
            path => Input::File(PathBuf::from(path)),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::StandardInput => f.write_str("standard input"),
            Input::File(path) => path.display().fmt(f),
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

/// The target of an only input: the named file, a file in the named folder, or one beside the
/// input.
fn single_target(input: &Input, output: Option<&str>) -> Target {
    match output {
        Some("-" | STANDARD_OUTPUT) => Target::StandardOutput,
        Some(folder) if folder.ends_with('/') || Path::new(folder).is_dir() => {
            target_in(input, Some(Path::new(folder)))
        }
        Some(file) => Target::File(PathBuf::from(file)),
        None => target_in(input, None),
    }
}

/// The name of the input with the ending `.webp`, in `folder` or beside the input.
fn target_in(input: &Input, folder: Option<&Path>) -> Target {
    match (input, folder) {
        (Input::StandardInput, None) => Target::StandardOutput,
        (Input::StandardInput, Some(folder)) => Target::File(folder.join("stdin.webp")),
        (Input::File(path), None) => Target::File(path.with_extension("webp")),
        (Input::File(path), Some(folder)) => {
            let name = path.with_extension("webp");
            Target::File(folder.join(name.file_name().unwrap_or(name.as_os_str())))
        }
    }
}

/// Checks that no two inputs have one output, and that no output is an input.
fn check_targets(tasks: &[Task]) -> Result<(), String> {
    let files = |task: &Task| match &task.input {
        Input::File(path) => Some(identity(path)),
        Input::StandardInput => None,
    };
    let inputs: HashSet<PathBuf> = tasks.iter().filter_map(files).collect();
    let mut outputs: HashMap<PathBuf, &Input> = HashMap::new();
    for task in tasks {
        let Target::File(target) = &task.target else {
            continue;
        };
        let target = identity(target);
        if inputs.contains(&target) {
            return Err(format!(
                "{} would overwrite an input; give another -o",
                task.target
            ));
        }
        if let Some(other) = outputs.insert(target, &task.input) {
            return Err(format!(
                "{other} and {} would both become {}",
                task.input, task.target
            ));
        }
    }
    Ok(())
}

/// A path that is equal for two names of the same file, if its folder exists.
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
        Ok(tasks(&inputs, output)?
            .iter()
            .map(|task| task.target.to_string())
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
