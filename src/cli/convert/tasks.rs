//! Which input becomes which output, decided before anything is converted.

use super::folders;
use super::naming::Name;
use crate::image::Format;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
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

/// Where the WebP files go, by the flags of the command.
#[derive(Clone, Debug, Default)]
pub(super) struct Destination {
    /// `--output`
    pub(super) output: Option<String>,
    /// `--recursive`
    pub(super) recursive: bool,
    /// `--name`
    pub(super) name: Option<Name>,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) tasks: Vec<Task>,
    /// Inputs that are WebP files already.
    pub(super) webps: Vec<PathBuf>,
    /// What cannot be read, and why.
    pub(super) unreadable: Vec<(PathBuf, String)>,
}

/// A picture to convert.
struct Found {
    input: Input,
    /// Its path below the folder that was named.
    below: Option<PathBuf>,
}

/// Finds the pictures, and chooses the output of each.
///
/// # Errors
/// A sentence for the user: no input, standard input or output among many, two inputs with one
/// output, or an output that is an input.
pub(super) fn plan(inputs: &[String], destination: &Destination) -> Result<Plan, String> {
    let inputs: Vec<Input> = inputs.iter().map(|input| Input::new(input)).collect();
    if inputs.is_empty() {
        return Err("no input was given; allowed are one or more pictures, or -".to_owned());
    }
    let are_many = inputs.len() > 1 || destination.recursive;
    if are_many && inputs.contains(&Input::StandardInput) {
        return Err("- (standard input) must be the only input".to_owned());
    }
    let folder = match destination.output.as_deref() {
        Some("-" | STANDARD_OUTPUT) if are_many => {
            return Err(
                "-o - (standard output) takes one input; for many give a folder".to_owned(),
            );
        }
        Some(output) if are_many || output.ends_with('/') || Path::new(output).is_dir() => {
            Some(Path::new(output))
        }
        Some(output) => {
            if destination.name.is_some() {
                return Err(format!(
                    "-o {output} is the name of a file, and --name was given, too; give one of the two, or end \
                     the folder with /"
                ));
            }
            let input = inputs.first().expect("there is one");
            return single(input, output);
        }
        None => None,
    };
    if let Some(folder) = folder.filter(|folder| folder.exists() && !folder.is_dir()) {
        return Err(format!(
            "-o {} is a file; several pictures, or -r, need a folder",
            folder.display()
        ));
    }
    let mut plan = Plan::default();
    let name = destination.name.clone().unwrap_or_default();
    for input in inputs {
        for found in plan.find(input, destination.recursive, folder) {
            plan.add(found, folder, &name);
        }
    }
    check_targets(&plan.tasks)?;
    Ok(plan)
}

/// The plan for an only input and a file, or standard output.
fn single(input: &Input, output: &str) -> Result<Plan, String> {
    let mut plan = Plan::default();
    let target = match output {
        "-" | STANDARD_OUTPUT => Target::StandardOutput,
        file => Target::File(PathBuf::from(file)),
    };
    for Found { input, .. } in plan.find(input.clone(), false, None) {
        plan.tasks.push(Task {
            input,
            target: target.clone(),
        });
    }
    check_targets(&plan.tasks)?;
    Ok(plan)
}

impl Plan {
    /// The pictures that an argument stands for.
    fn find(&mut self, input: Input, recursive: bool, output: Option<&Path>) -> Vec<Found> {
        let alone = |input| vec![Found { input, below: None }];
        let path = match input {
            Input::StandardInput => return alone(input),
            Input::File(path) => path,
        };
        if recursive && path.is_dir() {
            let found = folders::find(&path, output);
            self.unreadable.extend(found.unreadable);
            let pictures = found.pictures.into_iter().map(|picture| Found {
                below: picture.strip_prefix(&path).ok().map(Path::to_owned),
                input: Input::File(picture),
            });
            return pictures.collect();
        }
        if folders::is_webp(&path) {
            self.webps.push(path);
            return Vec::new();
        }
        alone(Input::File(path))
    }

    fn add(&mut self, found: Found, folder: Option<&Path>, name: &Name) {
        let target = match (&found.input, folder) {
            (Input::StandardInput, None) => Target::StandardOutput,
            (Input::StandardInput, Some(folder)) => {
                Target::File(folder.join(name.of(Path::new("stdin"))))
            }
            (Input::File(path), None) => Target::File(path.with_file_name(name.of(path))),
            (Input::File(path), Some(folder)) => {
                let below = found.below.as_deref().and_then(Path::parent);
                let folder = folder.join(below.unwrap_or(Path::new("")));
                Target::File(folder.join(name.of(path)))
            }
        };
        self.tasks.push(Task {
            input: found.input,
            target,
        });
    }
}

impl Task {
    /// Where the input itself is written in place of its WebP: the same name with the ending of the
    /// input's own name, or that of its format.
    pub(super) fn target_of_original(&self, bytes: &[u8]) -> Target {
        let Target::File(path) = &self.target else {
            return Target::StandardOutput;
        };
        let own = self.input.ending();
        let ending = Format::sniff(bytes).map_or("", Format::ending);
        Target::File(path.with_extension(own.unwrap_or(ending.as_ref())))
    }

    /// Whether the input was changed after this file; standard input always was.
    pub(super) fn is_newer_than(&self, output: &Path) -> bool {
        let Input::File(input) = &self.input else {
            return true;
        };
        let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        match (changed(input), changed(output)) {
            (Some(input), Some(output)) => input > output,
            // The conversion finds out why.
            _ => true,
        }
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
    /// The ending of the file's name.
    fn ending(&self) -> Option<&OsStr> {
        match self {
            Input::File(path) => path.extension(),
            Input::StandardInput => None,
        }
    }

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
            // Then it tells them apart.
            let hint = if other.ending() == task.input.ending() {
                ""
            } else {
                "; --name '{stem}.{ext}.webp' keeps both"
            };
            return Err(format!(
                "{other} and {} would both become {}{hint}",
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
        let destination = Destination {
            output: output.map(str::to_owned),
            ..Destination::default()
        };
        let plan = plan(&inputs, &destination)?;
        Ok(plan
            .tasks
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
            Err(
                "x/a.png and y/a.jpg would both become out/a.webp; --name '{stem}.{ext}.webp' keeps both"
                    .to_owned()
            )
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
